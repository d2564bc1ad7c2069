"""`steersman trace` as a person meets it: output, files, exit codes."""

import orjson
import pytest
from typer.testing import CliRunner

from steersman.cli.trace import trace as command
from steersman.trace import sktrace
from steersman.trace.recording import Trace, TraceEvent
from steersman.trace.tracked import Tracked
from tests.source import ROOT

WEB = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"annotations": {}, "name": "web\x1b[2J", "namespace": "shop"},
    "spec": {"template": {"spec": {"serviceAccountName": "cook"}}},
}


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.sktrace"
    events = (TraceEvent(100, (WEB,)), TraceEvent(107), TraceEvent(160, (), (WEB,)))
    sktrace.write(path, Trace(config={"apps/v1.Deployment": Tracked()}, events=events))
    return path


def run(*words):
    return CliRunner().invoke(command, [str(word) for word in words])


def test_show_lists_what_happens_and_steers_no_terminal(small):
    assert run("show", small).output.splitlines() == [
        "       0 s  + apps/v1.Deployment shop/web?[2J",
        "       7 s  (nothing)",
        "      60 s  - apps/v1.Deployment shop/web?[2J",
    ]


def test_stats_counts(small):
    text = run("stats", small).output
    assert "1970-01-01T00:01:40Z to 1970-01-01T00:02:40Z: 60 s, 3 events" in text
    assert "apps/v1.Deployment: 1 objects, applied 1 times, deleted 1 times" in text
    counted = orjson.loads(run("stats", small, "--json").output)
    assert counted["kinds"] == {"apps/v1.Deployment": {"applied": 1, "deleted": 1, "objects": 1}}
    assert (counted["seconds"], counted["namespaces"]) == (60, {"shop": 1})


def test_validate_tells_errors_by_its_exit_code_and_repairs(small, tmp_path):
    told = run("validate", small)
    assert told.exit_code == 1
    assert "E0001 error: events[0].applied_objs[0]" in told.output
    assert [each["code"] for each in orjson.loads(run("validate", small, "--json").output)] == ["E0001"]
    sound = tmp_path / "sound.sktrace"
    repaired = run("validate", small, "--fix", "-o", sound)
    assert (repaired.exit_code, repaired.output) == (0, f"{sound}: 1 repaired; 0 errors, 0 warnings\n")
    assert run("validate", sound).exit_code == 0


@pytest.mark.parametrize("words", [["--fix"], ["-o", "x.sktrace"]])
def test_fix_and_output_belong_together(small, words):
    told = run("validate", small, *words)
    assert told.exit_code == 2 and "belong together" in told.stderr


@pytest.mark.parametrize("verb", ["show", "stats", "validate"])
def test_a_file_that_is_none_is_one_line(tmp_path, verb):
    path = tmp_path / "old.sktrace"
    path.write_bytes(b"\x94\x01")
    told = run(verb, path)
    assert told.exit_code == 2 and len(told.stderr.splitlines()) == 1
    assert "version 1" in told.stderr


def test_every_rule_is_explained_and_in_the_page():
    from steersman.trace.validate import RULES

    page = (ROOT / "docs" / "traces.md").read_text(encoding="utf-8")
    for code, rule in RULES.items():
        assert f"`{code}`" in page
        told = run("explain", code.lower())
        assert told.exit_code == 0 and told.output.startswith(f"{code} {rule.name} ({rule.severity}; ")
    assert run("explain", "E9999").exit_code == 2
