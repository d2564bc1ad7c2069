"""The line on a terminal while a search goes on, and Ctrl-C on a real one."""

import os
import pty
import re
import sys
import time
from collections import deque
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from steersman.check.report import run_file
from steersman.check.report.progress import CLEAR, LEAST, MAX_SAMPLES, Progress, Sample, estimated_share
from steersman.check.verdict import Verdict
from tests.check.command import HEAD


def ebbing(growth, waiting, looked=1_000, steps=2_000):
    """Looks at a search that has so many new states for each one it looks at."""
    samples = deque([Sample(0.0, looked, waiting)])
    for at in range(1, steps):
        left = round(waiting - at * (1 - growth))
        if left <= 0:
            break
        samples.append(Sample(at / 100, looked + at, left))
    return samples


@pytest.mark.parametrize("growth", [0.2, 0.5, 0.8, 0.9])
def test_a_steady_ebb_is_estimated_rightly(growth):
    samples = ebbing(growth, 400)
    total = 1_000 + 400 / (1 - growth)
    seen = []
    for end in range(2, len(samples)):
        share = estimated_share(deque(list(samples)[:end]))
        if share is not None:
            seen.append(abs(share - samples[end - 1].looked / total))
    assert len(seen) > 20 and max(seen) < 0.05


@pytest.mark.parametrize("growth", [1.0, 1.02, 3.0])
def test_nothing_is_said_where_nothing_ebbs(growth):
    assert estimated_share(ebbing(growth, 400)) is None


def test_nothing_is_said_after_few_states_or_one_window():
    assert estimated_share(deque([Sample(0.0, 10, 90), Sample(1.0, 100, 4)])) is None
    assert estimated_share(deque([Sample(1.0, LEAST * 2, 40)])) is None
    turned = deque([Sample(at / 10, 100 * at, 50 * at) for at in range(1, 11)] + [Sample(2.0, 1_080, 480)])
    assert estimated_share(turned) is None


def test_the_line_fits_and_forgets_the_search_before():
    written = []
    progress = Progress(written.append, lambda: 30)
    verdict = Verdict("a", states=5_000, transitions=9_000, seconds=1.0, depth=7, frontier=100)
    progress(verdict)
    assert written == [CLEAR + "5,000 states (5,000/s), 9,000 transitions"[:29]]
    for at in range(MAX_SAMPLES + 10):
        verdict.states, verdict.seconds = 6_000 + at, 2.0 + at
        line = progress.line(verdict)
    assert len(progress._samples) <= MAX_SAMPLES and "(1/s)" in line and "depth 7, 100 waiting" in line
    assert "(100/s)" in progress.line(Verdict("b", states=200, seconds=2.0))


ENDLESS = (
    HEAD
    + """
class Count(sm.Controller):
    kind = "v1/ConfigMap"
    def reconcile(self, c, key):
        c.patch(key, {"data": {"n": str(int(c.get(key).data.n or 0) + 1)}})

def scenario_endless():
    w = sm.Scenario("endless")
    a = w.apply(OBJECT)
    w.run(Count)
    w.always("less than three", lambda s: int(s[a].data.n or 0) < 3)
    return w
"""
)


def on_a_terminal(folder, *arguments):
    """Runs `steersman check endless.py` on a terminal of its own and types Ctrl-C once it has told where it is."""
    (folder / "endless.py").write_text(ENDLESS)
    child, terminal = pty.fork()
    if not child:
        os.chdir(folder)
        os.environ["COLUMNS"] = "200"
        main = "from steersman.cli import main; main()"
        os.execv(sys.executable, [sys.executable, "-c", main, "check", "endless.py", *arguments])
    shown, typed, end = b"", False, time.monotonic() + 60
    while time.monotonic() < end:
        try:
            more = os.read(terminal, 4096)
        except OSError:  # Linux's way to say that the other side is closed
            break
        shown += more
        if not typed and b" waiting" in shown:
            typed = True
            os.write(terminal, b"\x03")
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), shown.decode()


def test_ctrl_c_on_a_terminal_gives_what_was_found_and_every_report(tmp_path):
    reports = {"--html": "page.html", "--save": "a.run", "--junit": "junit.xml", "--sarif": "a.sarif"}
    code, shown = on_a_terminal(tmp_path, *[text for pair in reports.items() for text in pair])
    assert code == 130
    assert re.search(r"[\d,]+ states \([\d,]+/s\), [\d,]+ transitions, depth [\d,]+, 1 waiting, [\d,]+ MB", shown)
    assert "VIOLATED  always: less than three" in shown and "search: BOUNDED (interrupted): " in shown
    for name in reports.values():
        assert f"wrote {name}" in shown and (tmp_path / name).stat().st_size > 100
    (check,) = run_file.read(tmp_path / "a.run").checks
    assert check.word == "BOUNDED" and check.picture is not None and len(check.violations) == 1
    assert Xml.parse(tmp_path / "junit.xml").getroot().find("testsuite").get("failures") == "1"
    assert "Traceback" not in shown and Path(tmp_path / "page.html").read_text().endswith("</html>\n")
