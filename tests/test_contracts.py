"""The import and determinism contracts of docs/ARCHITECTURE.md, as far as a look at the source can tell.

Contract 1 (layers) is import-linter's (.importlinter), contract 2 (banned calls) Ruff's (pyproject.toml) and
here where Ruff cannot judge; contracts 3 and 4 are here. Each has a test that shows it failing.
"""

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.source import ROOT, Source, read_sources

# Contract 2: what two runs of one schedule must not differ in.
DETERMINISTIC = ("kernel", "api", "ownership", "lifecycle", "controllers", "nodes", "sched")

# Contract 3: a controller sees the world through its client only.
CONTROLLERS_MAY_USE = ("kernel", "api", "lifecycle", "controllers")
CONTROLLERS_MUST_NOT_USE = (
    "steersman.kernel.store",
    "steersman.kernel.world",
    "steersman.kernel.ports",
    "steersman.kernel.view",
)
CONTROLLERS_MUST_NOT_NAME = frozenset(
    ["Store", "World", "View", "Clock", "Nodes", "NodeStreams", "Journal", "Caller", "Signer", "Host"]
)

# Contract 4: everything else is plain synchronous code, which can be re-executed and interleaved.
ASYNC = ("serve", "remote", "run", "console", "sim.record", "sim.drive", "check.host")


def find_hash(source: Source) -> Iterator[str]:
    """Uses of builtin `hash`, whose value for a string differs from process to process.

    Inside `__hash__` it is allowed: that value only ever chooses a slot of a dict.
    """
    if not source.is_in(*DETERMINISTIC):
        return
    inside = {
        id(node)
        for method in ast.walk(source.tree)
        if isinstance(method, ast.FunctionDef) and method.name == "__hash__"
        for node in ast.walk(method)
    }
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Name) and node.id == "hash" and id(node) not in inside:
            yield f"{source.path}:{node.lineno}: builtin hash() differs between processes; use a digest"


def find_silenced(source: Source) -> Iterator[str]:
    """`noqa` comments that would switch contract 2 off."""
    if not source.is_in(*DETERMINISTIC):
        return
    for number, line in enumerate(source.text.splitlines(), start=1):
        comment = re.search(r"#\s*(ruff:\s*)?noqa(?P<codes>:[^#]*)?", line)
        if comment and (not comment["codes"] or "TID" in comment["codes"]):
            yield f"{source.path}:{number}: this noqa hides banned calls; name another rule, or call a port"


def find_controller_imports(source: Source) -> Iterator[str]:
    """Imports of a controller that go past its client: a Store, View, World, port, or other package."""
    if not source.is_in("controllers"):
        return
    may = tuple(f"steersman.{package}" for package in CONTROLLERS_MAY_USE)
    for line, name in source.imports():
        if name != "steersman" and not name.startswith("steersman."):
            continue
        package = ".".join(name.split(".")[:2])
        forbidden = name.split(".")[-1] in CONTROLLERS_MUST_NOT_NAME or any(
            name == module or name.startswith(module + ".") for module in CONTROLLERS_MUST_NOT_USE
        )
        if package not in may and name != "steersman":
            yield f"{source.path}:{line}: a controller does not import {name}"
        elif forbidden or (name == "steersman" and _is_plain_import(source, line)):
            yield f"{source.path}:{line}: a controller uses its client instead of {name}"


def _is_plain_import(source: Source, line: int) -> bool:
    """`import steersman` gives access to everything; `from steersman import api` names what it takes."""
    return any(isinstance(node, ast.Import) and node.lineno == line for node in ast.walk(source.tree))


def find_async(source: Source) -> Iterator[str]:
    """`async def` where code must stay synchronous."""
    if source.is_in(*ASYNC):
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.AsyncFunctionDef):
            yield f"{source.path}:{node.lineno}: async def {node.name}: only in {', '.join(ASYNC)}"


CHECKS = [find_hash, find_silenced, find_controller_imports, find_async]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_source_keeps_the_contract(check):
    found = [finding for source in read_sources("src") for finding in check(source)]
    assert not found, "\n".join(found)


# Each check can fail.


@pytest.mark.parametrize(
    ("check", "module", "text", "fails"),
    [
        (find_hash, "kernel.store", "x = hash('a')", True),
        (find_hash, "nodes.kubelet", "xs.sort(key=hash)", True),
        (find_hash, "run.daemon", "x = hash('a')", False),
        (find_hash, "kernel.store", "x = self.hash('a')", False),
        (find_hash, "kernel.store", "class K:\n    def __hash__(self):\n        return hash(self.k)", False),
        (find_hash, "kernel.store", "class K:\n    def digest(self):\n        return hash(self.k)", True),
        (find_silenced, "kernel.store", "import time  # noqa: TID251", True),
        (find_silenced, "kernel.store", "import time  # noqa", True),
        (find_silenced, "kernel.store", "# ruff: noqa", True),
        (find_silenced, "kernel.store", "# ruff: noqa: E501, TID251", True),
        (find_silenced, "kernel.store", "x = 1  # noqa: E501", False),
        (find_silenced, "serve.http", "import time  # noqa", False),
        (find_controller_imports, "controllers.deployment", "from steersman.kernel.store import Store", True),
        (find_controller_imports, "controllers.deployment", "from steersman.kernel import world", True),
        (find_controller_imports, "controllers.deployment", "from ..kernel import ports", True),
        (find_controller_imports, "controllers.deployment", "import steersman.kernel.view as v", True),
        (find_controller_imports, "controllers.deployment", "from steersman.api.begin import Store", True),
        (find_controller_imports, "controllers.deployment", "from steersman.nodes.kubelet import K", True),
        (find_controller_imports, "controllers.deployment", "from steersman.check import explore", True),
        (find_controller_imports, "controllers.deployment", "import steersman as sm", True),
        (find_controller_imports, "controllers.deployment", "from steersman.api.client import Client", False),
        (find_controller_imports, "controllers.deployment", "from steersman.kernel.object import Key", False),
        (find_controller_imports, "controllers.deployment", "from .pods import is_ready", False),
        (find_controller_imports, "controllers.deployment", "from dataclasses import dataclass", False),
        (find_controller_imports, "sched.queue", "from steersman.kernel.store import Store", False),
        (find_async, "kernel.world", "async def f(): ...", True),
        (find_async, "sim.metrics", "class C:\n    async def m(self): ...", True),
        (find_async, "check.explore", "def f():\n    async def g(): ...", True),
        (find_async, "running", "async def f(): ...", True),
        (find_async, "check.host.loop", "async def f(): ...", False),
        (find_async, "sim.record", "async def f(): ...", False),
        (find_async, "run.daemon", "async def f(): ...", False),
    ],
)
def test_a_breach_is_found(check, module, text, fails):
    source = Source(f"src/steersman/{module.replace('.', '/')}.py", text)
    assert bool(list(check(source))) is fails


@pytest.mark.parametrize(
    ("module", "text", "fails"),
    [
        ("kernel/store", "import time", True),
        ("api/begin", "from time import monotonic", True),
        ("ownership/rules", "import datetime\n\nNOW = datetime.datetime.now()", True),
        ("lifecycle/turn", "from datetime import date\n\nNOW = date.today()", True),
        ("controllers/deployment", "import random", True),
        ("nodes/kubelet", "import uuid\n\nUID = uuid.uuid4()", True),
        ("sched/queue", "import os.path", True),
        ("kernel/deep/er/module", "import asyncio", True),
        ("kernel/store", "import threading", True),
        ("kernel/store", "import socket", True),
        ("kernel/store", "import logging", True),
        ("kernel/store", "import bisect", False),
        ("kernel/store", "from datetime import datetime\n\nEPOCH = datetime.fromisoformat", False),
        ("run/daemon", "import time", False),
        ("check/host/loop", "import asyncio", False),
        ("serve/http", "import socket", False),
    ],
)
def test_ruff_bans_what_makes_runs_differ(module, text, fails):
    ruff = Path(sys.executable).with_name("ruff")
    command = [ruff, "check", "--select=TID251", "--no-cache", "--output-format=concise"]
    result = subprocess.run(
        [*command, f"--stdin-filename=src/steersman/{module}.py", "-"],
        input=text + "\n",
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == int(fails), result.stdout + result.stderr
    assert ("TID251" in result.stdout) is fails


@pytest.mark.parametrize(
    ("path", "text", "told"),
    [
        (
            "kernel/breach.py",
            "import steersman.check",
            "steersman.kernel is not allowed to import steersman.check",
        ),
        ("check/breach.py", "import steersman.sim", "steersman.check is not allowed to import steersman.sim"),
        ("api/breach.py", "import steersman.nodes", "steersman.api is not allowed to import steersman.nodes"),
        ("breach.py", "", "breach"),
        ("cli/breach.py", "import steersman.sim, steersman.check, steersman.kernel", None),
    ],
)
def test_import_linter_keeps_the_layers(tmp_path, path, text, told):
    """Packages as they are, empty but for one file."""
    for package in (ROOT / "src" / "steersman").glob("*/__init__.py"):
        (tmp_path / "steersman" / package.parent.name).mkdir(parents=True)
        (tmp_path / "steersman" / package.parent.name / "__init__.py").touch()
    for module in (ROOT / "src" / "steersman").glob("*.py"):
        (tmp_path / "steersman" / module.name).touch()
    (tmp_path / "steersman" / path).write_text(text + "\n", encoding="utf-8")
    shutil.copy(ROOT / ".importlinter", tmp_path)
    result = subprocess.run(
        [
            sys.executable,
            "-c",
            "from importlinter.cli import lint_imports_command as main; main()",
            "--no-cache",
        ],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    output = " ".join(result.stdout.split())
    assert result.returncode == int(told is not None), output + result.stderr
    if told is not None:
        assert told in output
