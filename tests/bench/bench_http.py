"""Throughput of the HTTP transport: a trivial GET of 4 KB, the server alone on one core. Run by hand:

    python tests/bench/bench_http.py [--seconds 3] [--connections 32] [--rounds 5] [--tls]

The load comes from a second process pinned to another core: `wrk` if it is installed, else a plain Python
client. The server's own processor time per request is printed too: on a machine with other work it is the
figure to compare.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from steersman.serve.credentials.tls import Authority, server_context
from steersman.serve.http import Request, Response, serve

BODY = b"x" * 4096


async def answer(request: Request) -> Response:
    return Response(200, (("content-type", "application/json"),), BODY)


def load(host: str, port: int, seconds: float, connections: int, secure: bool) -> float:
    """Keep one request on each connection, asked and read round by round; requests a second."""
    context = None
    if secure:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    request = b"GET /api/v1/namespaces/default/pods/web-0 HTTP/1.1\r\nHost: bench\r\nAccept: application/json\r\n\r\n"
    links = [socket.create_connection((host, port)) for _ in range(connections)]
    if context is not None:
        links = [context.wrap_socket(link) for link in links]
    links[0].sendall(request)
    size = len(links[0].recv(65536)) if not secure else 0
    while size < 4096:  # head and body may come apart
        size += len(links[0].recv(65536))
    started = now = time.monotonic()
    count = 0
    while now < started + seconds:
        for link in links:
            link.sendall(request)
        for link in links:
            left = size
            while left:
                left -= len(link.recv(left))
        count += connections
        now = time.monotonic()
    return count / (now - started)


async def measure(options: argparse.Namespace, context: ssl.SSLContext | None) -> tuple[float, float]:
    """Requests a second, and microseconds of the server's processor time for each."""
    served = 0

    async def counting(request: Request) -> Response:
        nonlocal served
        served += 1
        return await answer(request)

    async with await serve(counting, ssl=context) as server:
        host, port = server.addresses[0]
        wrk = None if options.python else shutil.which("wrk")
        if wrk:
            command = [wrk, "-t1", f"-c{options.connections}", f"-d{options.seconds}s", f"{server.url}/api/v1/pods"]
        else:
            command = [sys.executable, __file__, "--load", f"{host}:{port}", "--seconds", str(options.seconds)]
            command += ["--connections", str(options.connections)] + ["--tls"] * options.tls
        processor = time.process_time()
        client = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
        if hasattr(os, "sched_setaffinity") and (os.cpu_count() or 1) > 1:
            os.sched_setaffinity(client.pid, {1})
        output = (await client.communicate())[0].decode()
        processor = time.process_time() - processor
    rate = re.search(r"Requests/sec:\s*([\d.]+)", output) if wrk else re.fullmatch(r"([\d.]+)\n", output)
    if rate is None:
        sys.exit(f"the load generator failed: {output}")
    return float(rate[1]), processor / max(served, 1) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--python", action="store_true", help="use the Python client even if wrk is there")
    parser.add_argument("--load", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.load:
        host, port = options.load.rsplit(":", 1)
        print(load(host, int(port), options.seconds, options.connections, options.tls))
        return
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {0})
    with tempfile.TemporaryDirectory() as directory:
        context = server_context(Authority.create(Path(directory) / "pki")) if options.tls else None
        rounds = [asyncio.run(measure(options, context)) for _ in range(options.rounds)]
    rates, costs = sorted(rate for rate, _ in rounds), sorted(cost for _, cost in rounds)
    middle = len(rounds) // 2
    print(f"GET 4 KB, {options.connections} connections, {'TLS' if options.tls else 'plain'}, {options.rounds} rounds")
    print(f"requests/s  median {rates[middle]:,.0f}  ({rates[0]:,.0f} to {rates[-1]:,.0f})")
    print(f"server CPU  median {costs[middle]:.1f} us a request, so {1e6 / costs[middle]:,.0f}/s on a whole core")


if __name__ == "__main__":
    main()
