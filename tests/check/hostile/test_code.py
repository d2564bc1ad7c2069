"""What code of theirs does that it should not: each ends in one line that names it, or in a finding."""

import subprocess
import sys
from pathlib import Path

import pytest

import steersman as sm
from steersman.check.scenario import ScenarioError
from tests.check.command import HEAD, one_line, scenario
from tests.check.models import config, controller


class Odd(BaseException):
    """Of a library of theirs."""


async def later(_):
    return False


def gradually(_):
    yield False


def raising(error):
    def function(*_):
        raise error

    return function


def one(reconcile=lambda c, key: c.get(key)):
    w = sm.Scenario("one")
    w.apply(config("a"))
    w.run(controller("one", reconcile))
    return w


@pytest.mark.parametrize("holds", [later, gradually, lambda s: later, lambda s: print])
def test_a_property_that_is_never_false_is_refused(holds):
    with pytest.raises(ScenarioError, match=r"property 'p' gave .* which is never false"):
        sm.check(one().always("p", holds))
    with pytest.raises(ScenarioError, match=r"property 'converges' gave .* which is never false"):
        sm.check(one().converges(holds))


@pytest.mark.parametrize("holds", [True, "yes", None])
def test_a_property_is_a_function(holds):
    with pytest.raises(ScenarioError, match=r"property 'p' is .*give a function of a state"):
        one().always("p", holds)


@pytest.mark.parametrize("error", [Odd("x"), SystemExit(0), GeneratorExit()])
def test_whatever_is_raised_is_told(error):
    verdict = sm.check(one(raising(error)))
    (found,) = [v for v in verdict.violations if v.name == "raised"]
    assert f"raised {type(error).__name__}" in found.message and "test_code.py, line" in found.message
    with pytest.raises(ScenarioError, match=rf"property 'p' raised {type(error).__name__}: .*test_code\.py, line"):
        sm.check(one().always("p", raising(error)))
    with pytest.raises(ScenarioError, match=rf"user 'u' raised {type(error).__name__}"):
        sm.check(one().user("u", raising(error)))


def test_a_call_from_another_thread_is_told(monkeypatch):
    """Also where the reconcile changes nothing, and no step is ever taken."""
    import threading

    monkeypatch.setattr(threading, "excepthook", lambda args: None)

    def reconcile(c, key):
        thread = threading.Thread(target=lambda: c.get(key))
        thread.start()
        thread.join()

    verdict = sm.check(one(reconcile))
    assert "swallowed-suspend" in {v.name for v in verdict.violations}
    assert "in another thread" in str(verdict)


def command(tmp_path, body, *arguments):
    (tmp_path / "odd.py").write_text(f"import os, sys, threading, time\n{HEAD}{body}{scenario(controllers='Odd')}")
    command = [sys.executable, "-m", "steersman", "check", "odd.py", *arguments]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)


def odd(line):
    return f"class Odd(sm.Controller):\n    kind = 'v1/ConfigMap'\n    def reconcile(self, c, key):\n        {line}\n"


def test_threads_that_go_on_do_not_keep_the_command(tmp_path):
    done = command(tmp_path, odd("threading.Thread(target=time.sleep, args=(600,)).start()"))
    assert done.returncode == 0 and "threads running" in done.stderr and "COMPLETE" in done.stdout


def test_another_folder_moves_no_report(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    done = command(
        tmp_path,
        odd("os.chdir('elsewhere')") + "os.makedirs('elsewhere/elsewhere', exist_ok=True)\n",
        "--junit",
        "j.xml",
    )
    assert (tmp_path / "j.xml").exists(), done.stderr


def test_a_closed_output_is_opened_again(tmp_path):
    done = command(tmp_path, odd("sys.stdout.close()"))
    assert "Traceback" not in done.stderr and "COMPLETE" in done.stdout


def test_a_pipe_that_nobody_reads(tmp_path):
    (tmp_path / "odd.py").write_text(HEAD + scenario())
    line = f"{sys.executable} -m steersman check odd.py | true"
    done = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in done.stderr


def test_a_file_with_a_zero_byte(run, tmp_path):
    Path(tmp_path / "zero.py").write_text("\0")
    one_line(run(None, tmp_path / "zero.py"), "null bytes")
