"""A real kube-apiserver with its etcd, as scripts/oracle.py has built them, in a folder of its own on free ports.

Its flags make it comparable: no controllers run, anonymous requests see health paths only, events stay, tokens come
from a file, and the admission plugins are those that Steersman has.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.interop.conformance.play import NETWORK, USERS

START_SECONDS: Final = 120.0
ADMISSION_OFF: Final = ("ServiceAccount",)
"""Default plugins that are off: where there are no controllers, no namespace gets the account that pods would need."""
ANONYMOUS: Final = {
    "apiVersion": "apiserver.config.k8s.io/v1",
    "kind": "AuthenticationConfiguration",
    "anonymous": {"enabled": True, "conditions": [{"path": path} for path in ("/healthz", "/livez", "/readyz")]},
}


@dataclass(frozen=True)
class Real:
    """A running server: its URL and the tokens of USERS."""

    url: str
    tokens: Mapping[str, str]
    folder: Path
    pids: tuple[int, ...]


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextmanager
def running(command: Sequence[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A program, its output in a file, ended with the block."""
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def guest(program: Path, folder: Path, kubeconfig: Path, elect: bool) -> list[str]:
    """The command of a kube-scheduler or kube-controller-manager that works on the server of a kubeconfig."""
    access = [f"--{use}kubeconfig={kubeconfig}" for use in ("", "authentication-", "authorization-")]
    more = []
    if program.name == "kube-controller-manager":
        key = folder / "accounts.key"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        more = [f"--service-account-private-key-file={key}", f"--flex-volume-plugin-dir={folder / 'flex'}"]
    if elect:  # a leader that is late because the machine is busy is no part of what is looked at
        more += ["--leader-elect-lease-duration=10m", "--leader-elect-renew-deadline=8m"]
    return [str(program), *access, "--secure-port=0", f"--leader-elect={str(elect).lower()}", *more]


@contextmanager
def real_server(binaries: Path, folder: Path, extra: Sequence[str] = (), prefix: Sequence[str] = ()) -> Iterator[Real]:
    """A kube-apiserver that is ready. `prefix` goes before both commands (taskset, say)."""
    folder.mkdir(parents=True, exist_ok=True)
    etcd_port, peer_port, port = free_port(), free_port(), free_port()
    etcd = f"http://127.0.0.1:{etcd_port}"
    peer = f"http://127.0.0.1:{peer_port}"
    tokens = {user: f"conformance-{user}" for user in USERS}
    with ExitStack() as stack:
        store = stack.enter_context(
            running(
                [
                    *prefix, str(binaries / "etcd"), f"--data-dir={folder / 'etcd'}", f"--listen-client-urls={etcd}",
                    f"--advertise-client-urls={etcd}", f"--listen-peer-urls={peer}",
                    f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=default={peer}", "--log-level=warn",
                ],
                folder / "etcd.log",
            )
        )  # fmt: skip
        server = stack.enter_context(
            running([*prefix, *_command(binaries, folder, etcd, port, tokens), *extra], folder / "apiserver.log")
        )
        url = f"https://127.0.0.1:{port}"
        _await_ready(port, tokens["admin"], server, folder / "apiserver.log")
        yield Real(url, tokens, folder, (store.pid, server.pid))


def _command(binaries: Path, folder: Path, etcd: str, port: int, tokens: Mapping[str, str]) -> list[str]:
    key = folder / "accounts.key"
    made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    key.write_bytes(made.private_bytes(*pem))
    os.chmod(key, 0o600)
    lines = []
    for user, token in tokens.items():
        groups = f',"{",".join(USERS[user])}"' if USERS[user] else ""  # an empty one would be a group without a name
        lines.append(f"{token},{user},{user}{groups}")
    (folder / "tokens.csv").write_text("\n".join(lines) + "\n")
    (folder / "authentication.json").write_text(json.dumps(ANONYMOUS))
    return [
        str(binaries / "kube-apiserver"), f"--etcd-servers={etcd}", f"--secure-port={port}",
        "--bind-address=127.0.0.1", f"--cert-dir={folder / 'certs'}", "--authorization-mode=RBAC",
        "--allow-privileged=true",
        f"--token-auth-file={folder / 'tokens.csv'}", f"--authentication-config={folder / 'authentication.json'}",
        f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-cluster-ip-range={NETWORK}", "--event-ttl=24h", "--etcd-compaction-interval=0",
        "--allow-privileged=true",  # as kubeadm and every distribution start it
        f"--disable-admission-plugins={','.join(ADMISSION_OFF)}", "--endpoint-reconciler-type=none",
    ]  # fmt: skip


def _await_ready(port: int, token: str, server: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if server.poll() is not None:
            raise RuntimeError(f"kube-apiserver ended with {server.returncode}; see {log}")
        try:
            connection = http.client.HTTPSConnection(
                "127.0.0.1", port, timeout=5, context=ssl._create_unverified_context()
            )
            connection.request("GET", "/readyz", headers={"authorization": f"Bearer {token}"})
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        time.sleep(0.05)
    raise RuntimeError(f"kube-apiserver was not ready within {START_SECONDS:.0f} s; see {log}")
