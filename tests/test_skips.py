"""`.ci/check_skips.py`: a skip that nobody reviewed fails continuous integration."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.source import ROOT

ALLOWED = "# a comment\n\nno real inputs here\n"

PASSES = "def test_passes(): pass\n"
SKIPS = "import pytest\ndef test_skips(): pytest.skip({reason!r})\n"
SKIPS_IF = "import pytest\n@pytest.mark.skipif(True, reason={reason!r})\ndef test_skips(): pass\n"
SKIPS_FIXTURE = "import pytest\n@pytest.fixture\ndef d(): pytest.skip({reason!r})\ndef test_skips(d): pass\n"
SKIPS_MODULE = "import pytest\npytest.skip({reason!r}, allow_module_level=True)\n"
FAILS_AS_EXPECTED = "import pytest\n@pytest.mark.xfail(reason={reason!r})\ndef test_fails(): assert False\n"
KINDS_OF_SKIP = [SKIPS, SKIPS_IF, SKIPS_FIXTURE, SKIPS_MODULE, FAILS_AS_EXPECTED]


def run_pytest(folder: Path, *arguments: str, **files: str) -> Path:
    """Run pytest on test files of the given texts in `folder`; the path of its JUnit report."""
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(text, encoding="utf-8")
    report = folder / "junit.xml"
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *arguments],
        cwd=folder,
        capture_output=True,
        check=False,
    )
    return report


def check_skips(folder: Path, report: Path) -> subprocess.CompletedProcess[str]:
    """Run the script on a report, with the list ALLOWED."""
    (folder / "allowed.txt").write_text(ALLOWED, encoding="utf-8")
    script = ROOT / ".ci" / "check_skips.py"
    return subprocess.run(
        [sys.executable, script, report, folder / "allowed.txt"], capture_output=True, text=True, check=False
    )


def kinds_of_skip(reason: str) -> dict[str, str]:
    """One test file for every way to skip."""
    return {f"kind{n}": text.format(reason=reason) for n, text in enumerate(KINDS_OF_SKIP)}


@pytest.mark.parametrize("arguments", [[], ["-n1"]], ids=["plain", "xdist"])
def test_reviewed_skips_pass(tmp_path, arguments):
    report = run_pytest(tmp_path, *arguments, passes=PASSES, **kinds_of_skip("no real inputs here"))
    result = check_skips(tmp_path, report)
    assert (result.returncode, result.stderr) == (0, "")
    assert f"{len(KINDS_OF_SKIP)} skipped, allowed: no real inputs here" in result.stdout


@pytest.mark.parametrize("arguments", [[], ["-n1"]], ids=["plain", "xdist"])
def test_every_other_kind_of_skip_fails(tmp_path, arguments):
    report = run_pytest(tmp_path, *arguments, passes=PASSES, **kinds_of_skip("too hard"))
    result = check_skips(tmp_path, report)
    assert result.returncode == 1
    assert f"{len(KINDS_OF_SKIP)} skipped, NOT ALLOWED: too hard" in result.stdout
    assert "test_kind0::test_skips" in result.stdout
    assert f"{len(KINDS_OF_SKIP)} skips need a fix" in result.stderr


@pytest.mark.parametrize("reason", ["no real inputs here, or so", "no real inputs", "# a comment", ""])
def test_a_reason_is_compared_as_a_whole(tmp_path, reason):
    report = tmp_path / "junit.xml"
    case = f'<testcase name="t"><skipped message="{reason}"/></testcase>'
    report.write_text(f"<testsuites><testsuite>{case}</testsuite></testsuites>", encoding="utf-8")
    assert check_skips(tmp_path, report).returncode == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "No such file"),
        ("<testsuites>", "not a JUnit report"),
        ("<testsuites></testsuites>", "no test was run"),
    ],
)
def test_an_unusable_report_fails(tmp_path, text, told):
    report = tmp_path / "junit.xml"
    if text is not None:
        report.write_text(text, encoding="utf-8")
    result = check_skips(tmp_path, report)
    assert result.returncode == 2
    assert told in result.stderr and "Traceback" not in result.stderr


def test_the_reviewed_list_is_short():
    lines = (ROOT / ".ci" / "allowed-skips.txt").read_text(encoding="utf-8").splitlines()
    reasons = [line for line in lines if line.strip() and not line.startswith("#")]
    assert "no real inputs here" in reasons
    assert len(reasons) <= 5
