"""docs/limits.md says what the source says."""

from __future__ import annotations

import importlib.util

from tests.source import ROOT


def script():
    spec = importlib.util.spec_from_file_location("list_limits", ROOT / "scripts/list_limits.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_not_stale():
    """Every row is as in the source, and every limit of the HTTP server has one."""
    limits = script()
    true = [row for row in limits.page().splitlines() if row.startswith("| `")]
    told = [row for row in limits.PAGE.read_text().splitlines() if row.startswith("| `")]
    wrong = sorted(set(told) - set(true)) + sorted(row for row in set(true) - set(told) if "`serve/limits`" in row)
    assert not wrong, "run: python scripts/list_limits.py"


def test_it_has_the_limits_that_clients_meet():
    page = script().PAGE.read_text()
    for name in (
        "Limits.body_bytes",
        "Limits.connections",
        "MAX_WATCHES_OF_USER",
        "MAX_WORKSPACES",
        "PATTERN_LIMIT",
        "OBJECT_BUDGET",
        "MAX_PAGE",
        "DELETED_AT_ONCE",
        "MAX_MESSAGES",
        "MAX_VALUES",
        "BURST",
    ):
        assert name in page, name
