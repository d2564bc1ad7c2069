"""`steersman run` as a person meets it: starting, stopping, starting again, and everything that can be in its way."""

from __future__ import annotations

import signal
import socket
import ssl
import stat
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.run.client import COMMAND, Client, Served

NAMESPACES = "/api/v1/namespaces"


def steersman(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The command in `folder`, for what ends by itself."""
    command = [sys.executable, "-c", COMMAND, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


def test_version_and_help(tmp_path):
    assert steersman(tmp_path, "--version").stdout.startswith("steersman 0.")
    told = steersman(tmp_path, "--help").stdout
    assert "run" in told and "check" in told
    assert "--virtual-nodes" in steersman(tmp_path, "run", "--help").stdout
    code = "import sys, steersman.cli.app; print([m for m in ('numpy', 'orjson', 'asyncio') if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]", "the frame imports nothing heavy"


def test_a_life_a_stop_and_a_second_life(tmp_path):
    with Served(tmp_path, "--virtual-nodes", "2") as served:
        assert stat.S_IMODE(served.kubeconfig.stat().st_mode) == 0o600
        client = Client(served.kubeconfig)
        code, found = client.ask("GET", NAMESPACES)
        names = [item["metadata"]["name"] for item in found["items"]]
        assert code == 200 and names == ["default", "kube-node-lease", "kube-public", "kube-system"]
        assert len(client.ask("GET", "/api/v1/nodes")[1]["items"]) == 2
        code, made = client.ask("POST", NAMESPACES, {"metadata": {"name": "mine"}})
        assert code == 201
        assert client.ask("DELETE", f"{NAMESPACES}/default")[0] == 403
        assert client.ask("DELETE", f"{NAMESPACES}/kube-node-lease")[0] == 200
        end = time.monotonic() + 20
        while client.ask("GET", f"{NAMESPACES}/kube-node-lease")[0] == 200:
            assert time.monotonic() < end
            time.sleep(0.05)
        assert served.stop(signal.SIGTERM) == 0
        assert "export KUBECONFIG=" in served.said() and "everything acknowledged is in the store" in served.said()
        token = client.token
    with Served(tmp_path) as served:
        client = Client(served.kubeconfig)
        assert client.token == token, "a restart keeps the credential that open sessions use"
        assert client.ask("GET", f"{NAMESPACES}/kube-node-lease")[0] == 200, "it is made again at the start"
        code, again = client.ask("GET", f"{NAMESPACES}/mine")
        assert (code, again["metadata"]["uid"]) == (200, made["metadata"]["uid"])
        assert len(client.ask("GET", "/api/v1/nodes")[1]["items"]) == 2, "nodes stay"
        client.token = "wrong"
        assert client.ask("GET", NAMESPACES)[0] == 401
        assert served.stop(signal.SIGINT) == 0


def test_a_second_instance_is_told_of_the_first(tmp_path):
    with Served(tmp_path) as served:
        other = tmp_path / "other"
        other.mkdir()
        result = steersman(other, "run", "--store", served.store, "--listen", "127.0.0.1:0")
        assert result.returncode == 2
        assert f"is in use by process {served.process.pid}" in result.stderr and "Traceback" not in result.stderr
        assert not (other / "steersman.kubeconfig").exists()
        assert Client(served.kubeconfig).ask("GET", NAMESPACES)[0] == 200


def test_a_watch_ends_when_the_server_stops(tmp_path):
    with Served(tmp_path, store="memory:") as served:
        client = Client(served.kubeconfig)
        watch = client.watch(f"{NAMESPACES}?watch=1&resourceVersion=1")
        assert next(watch)["type"] == "ADDED"
        assert served.stop(signal.SIGTERM, 5.0) == 0, "a watch does not hold up a stop"
        assert "gone when it stops" in served.said()
    assert not (tmp_path / "store.db").exists()


def test_the_default_port_when_it_is_taken(tmp_path):
    taken = socket.socket()
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind(("127.0.0.1", 6443))
        taken.listen()
    except OSError:
        pass  # another program has it, which is as good
    with taken:
        with Served(tmp_path, listen="") as served:
            assert "port 6443 is taken, so the server listens on" in served.said()
            assert Client(served.kubeconfig).ask("GET", NAMESPACES)[0] == 200
        result = steersman(tmp_path, "run", "--listen", "127.0.0.1:6443", "--store", "memory:")
        assert result.returncode == 2 and "port 6443" in result.stderr and "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--listen", "0.0.0.0:0"], "add --allow-remote"),
        (["--listen", "here:there"], "is not a port"),
        (["--store", "mysql:x"], "is not a store URL"),
        (["--store", "sqlite:missing/store.db"], "existing directory"),
        (["--store", "sqlite:text"], "not a Steersman journal"),
        (["--kubeconfig", "text"], "not a kubeconfig"),
        (["--virtual-nodes", "100000"], "5000"),
    ],
)
def test_what_is_in_the_way_is_told_plainly(tmp_path, words, told):
    (tmp_path / "text").write_text("just: text\nnothing: else\n" * 40, encoding="utf-8")
    (tmp_path / "text").chmod(0o600)  # a store that others can read is told first
    options = ["--listen", "127.0.0.1:0"] if "--listen" not in words else []
    result = steersman(tmp_path, "run", *options, *words)
    assert result.returncode == 2, result
    assert told in " ".join(result.stderr.split()) and "Traceback" not in result.stderr
    assert result.stdout == ""


def test_a_damaged_store_is_not_started(tmp_path):
    with Served(tmp_path) as served:
        assert served.stop() == 0
    path = tmp_path / "store.db"
    data = path.read_bytes()
    damaged = data.replace(b'"name":"kube-public"', b'"name":"kube-pubLic"')
    assert damaged != data
    path.write_bytes(damaged)
    result = steersman(tmp_path, "run", "--listen", "127.0.0.1:0", "--store", f"sqlite:{path}")
    assert result.returncode == 2 and str(path) in result.stderr and "Traceback" not in result.stderr


def test_another_writer_ends_the_first_with_its_reason(tmp_path):
    """Beyond the reach of the lock (another machine, another tool) the journal's own lease decides."""
    import steersman.journal as sj

    with Served(tmp_path) as served:
        journal = sj.open(served.store)
        journal.acquire("usurper")
        with suppress(ConnectionError, ssl.SSLError):  # a controller's write may have found out before
            code, status = Client(served.kubeconfig).ask("POST", NAMESPACES, {"metadata": {"name": "late"}})
            assert code == 503 and "usurper" in status["message"]
        assert served.process.wait(15) == 1
        assert "usurper" in served.said()
        assert journal.latest(sj.Key("", "Namespace", "", "late")) is None
        journal.close()
