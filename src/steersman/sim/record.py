"""From the journal of a cluster that Steersman ran to a trace of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import orjson

from steersman.journal import Commit, Journal, JournalError
from steersman.journal.sqlite import SqliteJournal
from steersman.kernel.effect import MICRO
from steersman.sim.yamlfile import YamlFileError, read_documents
from steersman.trace.builder import TraceBuilder
from steersman.trace.filters import ExportFilters
from steersman.trace.gvk import GVK
from steersman.trace.recording import Trace
from steersman.trace.tracked import Tracked

DEFAULT_CONFIG: Final[Mapping[str, Tracked]] = {
    "apps/v1.Deployment": Tracked(),
    "apps/v1.StatefulSet": Tracked(),
    "apps/v1.DaemonSet": Tracked(),
    "apps/v1.ReplicaSet": Tracked(skip_owned=True),
    "batch/v1.Job": Tracked(lifecycle=True),
    "batch/v1.CronJob": Tracked(lifecycle=True),
    "v1.Pod": Tracked(lifecycle=True, skip_owned=True),
}
"""What people apply to have pods. Lives are recorded where pods end by themselves; of pods and ReplicaSets only those
that nobody owns, since their owners make the others again."""
SYSTEM_NAMESPACES: Final = ("kube-system", "kube-public", "kube-node-lease")
NEVER_OWNERS: Final = frozenset({("", "Event"), ("events.k8s.io", "Event"), ("coordination.k8s.io", "Lease")})
"""Kinds that are most of the writes of a cluster and own nothing: not looked at unless they are tracked."""
MAX_CONFIG_BYTES: Final = 1 << 20


class ConfigError(ValueError):
    """A tracer configuration that cannot be used; the text names the file, the field and the remedy."""


def record(
    journal: Journal,
    config: Mapping[str, Tracked] = DEFAULT_CONFIG,
    *,
    start: int | None = None,
    end: int | None = None,
    filters: ExportFilters | None = None,
) -> Trace:
    """The trace of [start, end), whole seconds since 1970: by default of all there is.

    Only kinds of which the journal holds the full history can be followed exactly; of head-only kinds it knows the
    newest version alone. Raises `TraceError` (nothing to record, no time in the window) and `JournalError`.
    """
    return record_commits(journal.read(), config, start=start, end=end, filters=filters)


def record_commits(
    commits: Iterable[Commit],
    config: Mapping[str, Tracked] = DEFAULT_CONFIG,
    *,
    start: int | None = None,
    end: int | None = None,
    filters: ExportFilters | None = None,
) -> Trace:
    """`record` from commits in the order of their revisions."""
    builder = TraceBuilder(config)
    tracked = {(gvk.group, gvk.kind) for gvk in map(GVK.parse, config)}
    for commit in commits:
        gk = (commit.key.group, commit.key.kind)
        if gk in NEVER_OWNERS and gk not in tracked:
            continue
        try:
            obj = orjson.loads(commit.object)
        except orjson.JSONDecodeError as error:
            problem = f"revision {commit.revision}: the object {commit.key} is not JSON: {error}"
            raise JournalError(problem, "verify the journal, and restore it from a backup") from None
        seconds = commit.at / MICRO
        if commit.verb == "delete":
            builder.delete(obj, seconds)
        else:
            builder.apply(obj, seconds)
    return builder.export(start, end, filters)


def open_for_reading(url: str) -> Journal:
    """The journal at `sqlite:PATH`, which must exist; a server may be writing to it. Raises `JournalError`."""
    scheme, _, path = url.partition(":")
    if scheme != "sqlite" or not path.strip():
        raise JournalError(f"store {url!r} cannot be recorded from", "use sqlite:PATH, the --store of `steersman run`")
    if not Path(path).expanduser().is_file():
        raise JournalError(f"journal {path}: there is no such file", "name the file that `steersman run` was given")
    return SqliteJournal(path, readonly=True)


def load_config(path: str | Path) -> dict[str, Tracked]:
    """A tracer configuration as SimKube has it: `trackedObjects`, kind to options (docs/traces.md). Raises
    `ConfigError`."""
    try:
        documents = read_documents(path, MAX_CONFIG_BYTES, "give a YAML file with trackedObjects")
    except YamlFileError as error:
        raise ConfigError(str(error)) from None
    document = documents[0] if documents else None
    tracked = document.get("trackedObjects") if isinstance(document, dict) else None
    if not isinstance(tracked, dict) or not tracked:
        raise ConfigError(f"{path}: trackedObjects is missing or empty; write `trackedObjects: {{v1.Pod: {{}}}}`")
    return {_kind(kind, path): _tracked(kind, options, path) for kind, options in tracked.items()}


def _kind(kind: Any, path: str | Path) -> str:
    try:
        return str(GVK.parse(str(kind)))
    except ValueError as error:
        raise ConfigError(f"{path}: trackedObjects: {error}") from None


def _tracked(kind: str, options: Any, path: str | Path) -> Tracked:
    try:
        return Tracked.parse({} if options is None else options)
    except ValueError as error:
        raise ConfigError(f"{path}: trackedObjects[{kind}]: {error}") from None
