"""What is told: hostile names, reports that cannot be written, options that are not heeded."""

import subprocess
import sys

import pytest

import steersman as sm
from steersman.check.report.cause import CauseError, place, slice_of
from steersman.check.verdict import UNSEEN, plain
from tests.check.command import HEAD, scenario


def test_what_steers_a_terminal_is_shown():
    evil = "a\x1b[2Jb\x9b\u202ec\u2066d\x00\x7f\r"
    assert plain(evil) == r"a\x1b[2Jb\x9b\u202ec\u2066d\x00\x7f" + r"\x0d"
    assert plain("a\n\tb é 日本") == "a\n\tb é 日本"
    assert not any(chr(code) in plain("".join(map(chr, range(0x3000)))) for code in UNSEEN)


def test_a_hostile_value_reaches_no_terminal():
    w = sm.Scenario("evil\x1b[31m")
    w.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "\x1b]0;owned\x07"}})

    class Copy(sm.Controller):
        kind = "v1/ConfigMap"

        def reconcile(self, c, key):
            if not c.get(key).data.y:
                c.patch(key, {"data": {"y": "\x1b[2J\u202e"}})

    w.run(Copy)
    w.always("never \x9b", lambda s: not s[sm.Key("", "ConfigMap", "default", "a")].data.y)
    told = str(sm.check(w))
    assert "VIOLATED" in told and r"\u001b[2J" in told
    assert not set(told) & {chr(code) for code in UNSEEN}


@pytest.mark.parametrize("options", [{"strategy": "pct"}, {"seed": 3}, {"delays": 5, "pct_depth": 2}])
def test_options_of_walks_are_not_passed_over_in_silence(options):
    w = sm.Scenario("one")
    w.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})

    class Noop(sm.Controller):
        kind = "v1/ConfigMap"

        def reconcile(self, c, key):
            c.get(key)

    w.run(Noop)
    for name in options:
        assert name.replace("_", "-") in str(sm.check(w, **options)).partition("not heeded: ")[2]
    assert "not heeded" not in str(sm.check(w)) and "not heeded" not in str(sm.check(w, walks=2, **options))


def test_one_report_that_cannot_be_written_does_not_stop_the_others(run, tmp_path):
    (tmp_path / "file").write_text("")
    names = {"--junit": "file/j.xml", "--sarif": "s.sarif", "--html": "file/p.html", "--save": "r.run"}
    args = [word for option, name in names.items() for word in (option, str(tmp_path / name))]
    code, _, err = run(scenario(), *args)
    assert code == 2
    assert (tmp_path / "s.sarif").exists() and (tmp_path / "r.run").exists()
    assert "j.xml" in err and "p.html" in err and err.count("the report was not written") == 2


def test_a_check_that_failed_is_an_error_in_junit(run, tmp_path):
    code, out, err = run(scenario("w.always('bad', lambda s: 1 / 0)"), "--junit", str(tmp_path / "j.xml"))
    assert code == 2 and "ZeroDivisionError" in err and "BOUNDED" in out
    text = (tmp_path / "j.xml").read_text()
    assert 'errors="1"' in text and "<error" in text and "division by zero" in text


def test_an_output_that_cannot_be_written_is_no_verdict(tmp_path):
    (tmp_path / "odd.py").write_text(HEAD + scenario())
    with open("/dev/full", "w") as full:
        words = [sys.executable, "-m", "steersman", "check", "odd.py", "--junit", "j.xml"]
        done = subprocess.run(
            words, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False
        )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr and "No space left" in done.stderr
    assert (tmp_path / "j.xml").exists()


class Makes(sm.Controller):
    kind = "v1/ConfigMap"

    def reconcile(self, c, key):
        if key.name == "a" and c.get(sm.Key("", "ConfigMap", "default", "b")) is None:
            c.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b", "namespace": "default"}})
        if key.name == "b" and not c.get(key).data["x.y"]:
            c.patch(key, {"data": {"x.y": "1"}})


def test_why_a_field_is_as_it_is_is_told_of_that_field():
    w = sm.Scenario("made")
    w.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    w.run(Makes)
    w.always("no y", lambda s: all(not obj.data["x.y"] for obj in s.list("v1/ConfigMap")))
    story = sm.check(w).violations[0].story
    with pytest.raises(CauseError, match="nobody changes it"):
        slice_of(story, place(story, "ConfigMap/b.data.never"))
    assert slice_of(story, place(story, "ConfigMap/b.data.x.y"))[-1] is story.steps[-1]  # data was not there before
    assert slice_of(story, place(story, "ConfigMap/b.metadata.name"))[-1].changes[0].sign == "+"
