"""The documentation of check: its command gives its output, its table is the table, the tests it names exist."""

import re
import subprocess
import sys

from steersman.api.client import Client
from steersman.api.controller import Controller
from steersman.check import Scenario
from steersman.kernel.faults import CATALOGUE
from steersman.kernel.identity import TABLE
from tests.source import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
CHECK = (ROOT / "docs" / "check.md").read_text(encoding="utf-8")
INVARIANTS = (ROOT / "docs" / "invariants.md").read_text(encoding="utf-8")


def without_times(text):
    return re.sub(r"in \d+\.\d s", "in … s", text)


def test_the_command_gives_the_output(tmp_path):
    command = re.search(r"^    \$ steersman (.*)$", CHECK, re.MULTILINE).group(1).split()
    shown = re.search(r"<!-- output of the command above.*?-->\n```\n(.*?)```", CHECK, re.DOTALL).group(1)
    done = steersman(tmp_path, *command)
    assert done.returncode == 1
    assert without_times(done.stdout) == without_times(shown)


def steersman(folder, *command):
    """Runs the command in a folder that has the examples."""
    (folder / "examples").symlink_to(ROOT / "examples")
    main = "from steersman.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", main, *command], cwd=folder, capture_output=True, text=True, check=False
    )


def snippet(text):
    """The check that a page shows."""
    (shown,) = (s for s in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "sm.check(" in s)
    return shown


def test_the_readmes_controller_runs_as_pasted_and_gives_what_it_shows(tmp_path):
    (tmp_path / "naive.py").write_text(snippet(README))
    done = steersman(tmp_path, "check", "naive.py")
    shown = re.search(r"```\n(naive: VIOLATED.*?)```", README, re.DOTALL).group(1)
    first, _, last = shown.partition("…\n")
    assert done.returncode == 1 and done.stdout.startswith(first), done.stdout + done.stderr
    assert last.rstrip("…\n") in done.stdout
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    (fresh / "naive.py").write_text(snippet(README).replace("lag=1", "lag=0"))
    assert "naive: holds\n  COMPLETE: " in steersman(fresh, "check", "naive.py").stdout


def test_the_pages_controller_holds_as_pasted(tmp_path):
    (tmp_path / "size.py").write_text(snippet(CHECK))
    done = steersman(tmp_path, "check", "size.py")
    assert done.returncode == 0 and "size: holds\n  COMPLETE: " in done.stdout, done.stdout + done.stderr


def test_everything_a_controller_has_is_in_the_tables():
    rows = "\n".join(line.split(" | ")[0] for line in CHECK.splitlines() if line.startswith("| `"))
    for name in vars(Client):
        if not name.startswith("_") and name not in ("api", "manager", "wake", "wake_after"):
            assert re.search(rf"`c\.{name}\b", rows), name
    for name in Controller.__annotations__:
        assert re.search(rf"`{name}`", rows), name
    for name in vars(Scenario):
        assert (
            name.startswith("_")
            or name in ("controllers", "factories", "starting", "system", "world")
            or f"w.{name}(" in CHECK
        ), name


def test_the_table_is_the_table():
    rows = re.findall(r"^\| (\S+) \| `(\S+)` \| (\S+) \| (.+) \|$", INVARIANTS, re.MULTILINE)
    expected = [("all" if rule.gk is None else rule.gk[1], rule.path, rule.action, rule.why) for rule in TABLE]
    assert rows == expected


def test_the_tests_it_names_exist():
    named = re.findall(r"[\w/]+/test_\w+\.py", INVARIANTS)
    assert len(set(named)) > 10
    for name in named:
        assert (ROOT / "tests" / name).is_file(), name
    text = (ROOT / "tests" / "laws" / "test_canonical_laws.py").read_text(encoding="utf-8")
    for function in re.findall(r"`(test_\w+)`", INVARIANTS):
        assert f"def {function}(" in text


def test_every_option_is_explained():
    from steersman.check.options import BY_NAME

    assert "max_memory" in BY_NAME
    for name in BY_NAME:
        if not name.endswith("memo") and name != "canonical":
            assert f"`{name}" in CHECK or f"{name}=" in CHECK, name


def test_the_table_of_faults_is_the_catalogue():
    section = CHECK[CHECK.index("## Faults") :].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| `(\S+) …` \| (.+) \| (.+) \| (.+) \|$", section, re.MULTILINE)
    assert rows == [(fault.name, fault.op, fault.models, fault.when, fault.source) for fault in CATALOGUE]


def test_nothing_names_a_page_that_is_not_here():
    for folder in ("src", "docs", "examples"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".md", ".yaml"):
                assert "DESIGN" not in path.read_text(encoding="utf-8"), path
