"""JSON as Go's programs write it."""

from steersman.api.go_html import escaped


def test_what_go_escapes():
    assert escaped('"<a & b>\u2028\u2029ü"') == '"\\u003ca \\u0026 b\\u003e\\u2028\\u2029ü"'
    assert escaped('"plain"') == '"plain"'
