"""The documentation of check: its command gives its output, its table is the table, the tests it names exist."""

import re
import subprocess
import sys

from steersman.kernel.identity import TABLE
from tests.source import ROOT

CHECK = (ROOT / "docs" / "check.md").read_text(encoding="utf-8")
INVARIANTS = (ROOT / "docs" / "invariants.md").read_text(encoding="utf-8")


def without_times(text):
    return re.sub(r"in \d+\.\d s", "in … s", text)


def test_the_command_gives_the_output(tmp_path):
    command = re.search(r"^    \$ steersman (.*)$", CHECK, re.MULTILINE).group(1).split()
    shown = re.search(r"<!-- output of the command above.*?-->\n```\n(.*?)```", CHECK, re.DOTALL).group(1)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    done = subprocess.run(
        [sys.executable, "-c", "from steersman.cli import main; main()", *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert without_times(done.stdout) == without_times(shown)


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
    from steersman.check import check

    options = check.__kwdefaults__ if hasattr(check, "__kwdefaults__") else {}
    for name in options:
        if not name.endswith("memo") and name != "canonical":
            assert f"`{name}" in CHECK or f"{name}=" in CHECK, name
