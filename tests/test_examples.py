"""Every example is run: what we show must work."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.source import ROOT

FILES = sorted(path for path in (ROOT / "examples").rglob("*.py"))
CHECKED = [path for path in FILES if path.parent.name in ("check", "compose")]
"""Each has a bug and its cure."""
PLATFORM = ROOT / "examples" / "platform"
TESTED = [*CHECKED, PLATFORM / "sites.py"]


def names(paths: list[Path]) -> list[str]:
    """Their paths below examples."""
    return [str(path.relative_to(ROOT / "examples")) for path in paths]


@pytest.mark.parametrize("path", TESTED, ids=names(TESTED))
def test_examples_of_check(path: Path) -> None:
    """As pytest runs them: the buggy one is reported, the fixed one holds."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=", str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout and "skipped" not in done.stdout


@pytest.mark.parametrize("path", CHECKED, ids=names(CHECKED))
def test_the_command_that_an_example_names(path: Path) -> None:
    """Its docstring says how to run it; so run, it finds the bug (exit code 1) and says which step matters."""
    command = f"steersman check {path.relative_to(ROOT)}"
    assert command in path.read_text(encoding="utf-8")
    main = "import sys; from steersman.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", main, *command.split()[1:], "--schedules", "/dev/null/none"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert done.stdout.count("VIOLATED") >= 1 and "holds" in done.stdout and "COMPLETE" in done.stdout
    assert "Traceback" not in done.stderr


def test_the_platform_runs_with_its_drivers(tmp_path: Path) -> None:
    """The controllers that were checked with models, on a control plane, with a real database and a zone file."""
    done = subprocess.run(
        [sys.executable, str(PLATFORM / "live.py"), str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    status, files, rest = done.stdout.split("\n", 2)
    zone, left, _ = rest.rsplit("\n", 2)
    assert "'size': 2" in status and ".db'" in files
    assert "shop.example.com. CNAME default-shop-" in zone and ".db.internal. ;" in zone
    assert left == repr(([], "$ORIGIN .\n$TTL 60\n")), "nothing is left of it"
