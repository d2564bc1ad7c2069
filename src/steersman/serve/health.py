"""`/livez`, `/readyz` and `/healthz`: whether the server can serve, in kube-apiserver's words.

`?verbose` lists the checks, `?exclude=NAME` leaves one out, and every check has a path of its own. Source of the
forms: apiserver pkg/server/healthz, release 1.36.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Final

from steersman.api import errors
from steersman.serve.answer import text_answer
from steersman.serve.message import Query, Response

PATHS: Final = ("healthz", "livez", "readyz")
STORAGE: Final = "journal"
"""The check of what keeps the objects: in Kubernetes that is etcd, whose checks monitoring knows by name."""
INFORMED, SHUTDOWN = "informer-sync", "shutdown"
"""The checks of whether those who follow the objects have begun to, and whether nobody has asked the server to end:
whoever is to send requests elsewhere looks at them, so that they are part of readiness alone."""
BLOCKED: Final = 120.0
"""Seconds without a free way to the log, after which the server is not well (as in Kubernetes)."""
Check = Callable[[], str]
"""What is wrong; "" when all is well."""


def _well() -> str:
    return ""


class LogFlow:
    """The check of whether log lines can be written: a handler whose line does not go out, to a full pipe say, keeps
    its lock, and sooner or later all who log wait for it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._stuck: dict[int, float] = {}

    def __call__(self) -> str:
        """What is wrong: a handler that was busy at every look for too long."""
        now = self._clock()
        busy = {id(each) for each in logging.getLogger().handlers if not _is_free(each)}
        self._stuck = {each: self._stuck.get(each, now) for each in busy}
        return "logging blocked" if any(now - since >= BLOCKED for since in self._stuck.values()) else ""


def _is_free(handler: logging.Handler) -> bool:
    lock = handler.lock
    if lock is None:
        return True
    if not lock.acquire(blocking=False):
        return False
    lock.release()
    return True


class Health:
    """The checks of one server, by name."""

    def __init__(self, checks: Mapping[str, Check] | None = None) -> None:
        """`checks`: STORAGE is asked by kube-apiserver's name for it, too."""
        given = dict(checks or {})
        informed, ending = given.pop(INFORMED, _well), given.pop(SHUTDOWN, _well)
        self._checks: dict[str, Check] = {"ping": _well, "log": LogFlow(), **given}
        stored = given.get(STORAGE, _well)
        alive = {"ping": _well, "log": self._checks["log"], "etcd": stored, **self._checks}
        ready = {**alive, "etcd-readiness": stored, INFORMED: informed, SHUTDOWN: ending}
        self._of = {name: ready if name == "readyz" else alive for name in PATHS}

    def paths(self) -> list[str]:
        """Every path there is."""
        return [path for name in PATHS for path in (f"/{name}", *(f"/{name}/{check}" for check in self._of[name]))]

    def found(self) -> dict[str, str]:
        """Every check, with what is wrong."""
        return {name: check() for name, check in self._checks.items()}

    def answer(self, name: str, rest: list[str], query: Query) -> Response:
        """The answer of `/NAME` or `/NAME/CHECK`. A check that is none is a page that is none."""
        checks = self._of[name]
        if rest:
            check = checks.get("/".join(rest))
            if check is None:
                return text_answer("404 page not found\n", 404)
            wrong = check()
            return text_answer(f"internal server error: {wrong}\n", 500) if wrong else text_answer("ok")
        left_out = set(query.all("exclude"))
        lines, failed = [], False
        for check_name, check in checks.items():
            if check_name in left_out:
                lines.append(f"[+]{check_name} excluded: ok\n")
            elif check():
                failed = True
                lines.append(f"[-]{check_name} failed: reason withheld\n")
            else:
                lines.append(f"[+]{check_name} ok\n")
        unknown = sorted(left_out - set(checks))
        if unknown:
            listed = ", ".join(errors.quote(text[:60]) for text in unknown)
            lines.append(f"warn: some health checks cannot be excluded: no matches for {listed}\n")
        if failed:
            return text_answer("".join(lines) + f"{name} check failed\n", 500)
        return text_answer("".join(lines) + f"{name} check passed\n" if "verbose" in query else "ok")
