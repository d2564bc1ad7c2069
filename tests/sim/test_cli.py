"""`steersman simulate` and `steersman record` as a person meets them: output, files, exit codes, errors."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import orjson
import pytest
import typer
import yaml
from typer.testing import CliRunner

from steersman.cli.record import record
from steersman.cli.simulate import simulate
from steersman.kernel.schedule import Schedule
from steersman.trace import sktrace
from tests.sim.traces import nodes, scaling

COMMAND = [sys.executable, "-c", "from steersman.cli import main; main()", "simulate"]


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.sktrace"
    sktrace.write(path, scaling())
    return str(path)


def run(function, *words):
    app = typer.Typer()
    app.command()(function)
    return CliRunner().invoke(app, [str(word) for word in words])


def test_the_report_is_printed(small):
    done = run(simulate, small, "--nodes", 2)
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0] == f"{small}: 2m30s from 2023-11-14T22:13:20Z on 2 nodes"
    heads = [line.split()[0] for line in lines if line.strip()]
    assert heads[1] == "pods" and {"pending", "requested", "cpu", "memory", "seed"} <= set(heads)
    assert "wall" not in done.stdout and "digest" in lines[-1]


def test_a_file_of_nodes_json_and_a_schedule(small, tmp_path):
    machines, steps = tmp_path / "nodes.yaml", tmp_path / "steps"
    machines.write_text(yaml.safe_dump_all(nodes(2)))
    done = run(simulate, small, "--nodes", machines, "--seed", 7, "--json", "--schedule", steps)
    assert done.exit_code == 0
    found = orjson.loads(done.stdout)
    assert (found["nodes"], found["seed"], "wall" in found) == (2, 7, False)
    assert len(Schedule.loads(steps.read_text())) == found["steps"]
    assert found["digest"]["schedule"] in steps.read_text()
    timed = run(simulate, small, "--nodes", machines, "--seed", 7, "--json", "--timing")
    assert orjson.loads(timed.stdout)["wall"]["seconds"] > 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["none.sktrace", "--nodes", "1"], "none.sktrace: cannot read it: No such file"),
        (["SMALL", "--nodes", "0"], "from 1 to 50,000"),
        (["SMALL", "--nodes", "none.yaml"], "none.yaml: cannot read it"),
        (["SMALL", "--nodes", "SMALL"], "not readable as YAML"),
        (["BROKEN", "--nodes", "1"], "broken.sktrace"),
        (["SMALL", "--nodes", "1", "--schedule", "/none/steps"], "cannot write the schedule"),
        (["SMALL", "--nodes", "BADNAME"], "Not a name"),
        (["SMALL", "--nodes", "1", "--timing"], "give both"),
    ],
)
def test_a_users_mistake_gives_one_line_and_exit_code_2(small, tmp_path, words, says):
    broken, bad_name = tmp_path / "broken.sktrace", tmp_path / "bad.yaml"
    broken.write_bytes(b"\x85\xa7version")
    (node,) = nodes(1)
    node["metadata"]["name"] = "Not a name"
    bad_name.write_text(yaml.safe_dump(node))
    places = {"SMALL": small, "BROKEN": broken, "BADNAME": bad_name}
    done = run(simulate, *[places.get(word, word) for word in words])
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    assert says in done.stderr and done.stderr.count("\n") == 1
    assert done.stderr.startswith("steersman simulate: ")


def start(*words, **environment):
    return subprocess.Popen(
        [*COMMAND, *[str(word) for word in words]],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **environment},
    )


def test_d1_the_json_and_the_schedule_are_equal_to_the_byte_in_two_processes(small, tmp_path):
    processes = [
        start(small, "--nodes", 3, "--seed", 1, "--json", "--schedule", tmp_path / f"steps-{n}", PYTHONHASHSEED=n)
        for n in ("1", "2")
    ]
    outputs = [process.communicate(timeout=60) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert outputs[0] == outputs[1] and outputs[0][0]
    assert (tmp_path / "steps-1").read_bytes() == (tmp_path / "steps-2").read_bytes()


def test_a_full_disk_gives_one_line(small):
    with open("/dev/full", "w") as full:
        done = subprocess.run([*COMMAND, small, "--nodes", "1"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr == "steersman simulate: cannot write the report: No space left on device\n"


def test_ctrl_c_gives_the_partial_report(tmp_path):
    from tests.sim.traces import deployment, trace

    long = tmp_path / "long.sktrace"  # some minutes of work
    waves = [(i * 100, [deployment(replicas=1 + 60 * (i % 2), cpu="1m")], []) for i in range(400)]
    sktrace.write(long, trace(*waves))
    process = start(long, "--nodes", 1)
    deadline = time.monotonic() + 30
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        break
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, (out, err)
    if out:  # it had begun
        assert b"PARTIAL: interrupted" in out and b"digest" in out
    assert b"Traceback" not in err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--store", "sqlite:none.db"], "none.db: there is no such file"),
        (["--store", "memory:"], "use sqlite:PATH"),
        (["--store", "sqlite:SMALL"], "not a Steersman journal"),
        (["--store", "sqlite:none.db", "-c", "none.yaml"], "none.yaml: cannot read it"),
        (["--store", "sqlite:none.db", "-c", "SMALL"], "not readable as YAML"),
        (["--store", "sqlite:none.db", "--start", "yesterday"], "--start: 'yesterday' is not a time"),
    ],
)
def test_record_refuses_a_mistake_with_one_line(small, tmp_path, words, says):
    target = tmp_path / "out.sktrace"
    done = run(record, *[word.replace("SMALL", small) for word in words], "-o", target)
    assert done.exit_code == 2 and done.stderr.count("\n") == 1
    assert says in done.stderr and not target.exists()
