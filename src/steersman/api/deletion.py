"""What a DELETE makes of an object: gone, marked and held back by finalizers, or as it was.

Pure: (old version, options, now) → next version. Source of the facts: apiserver, release 1.36,
`pkg/registry/generic/registry/store.go` (deletionFinalizersForGarbageCollection and
updateForGracefulDeletionAndFinalizers) and `pkg/registry/rest/delete.go` (BeforeDelete); Kubernetes
`pkg/registry/core/namespace/storage`, and the DefaultGarbageCollectionPolicy of each strategy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from steersman.api import errors, preconditions
from steersman.api.kinds import Kind
from steersman.api.preconditions import NAMESPACE
from steersman.api.rules.metadata_rules import ORPHAN
from steersman.api.times import MICRO, parse_time, time_text
from steersman.kernel.object import Object, Section
from steersman.kernel.store import FOREGROUND, waits_for
from steersman.kernel.value import EMPTY, Frozen, FrozenList

__all__ = ["FOREGROUND", "NEVER_OWNERS", "ORPHAN", "after", "check", "waits_for", "warnings"]
POD: Final = ("", "Pod")
POLICIES: Final = {"Background": "", "Foreground": FOREGROUND, "Orphan": ORPHAN}
"""propagationPolicy → the finalizer that makes the garbage collector act before the object goes."""
ORPHANS_BY_DEFAULT: Final = frozenset({("", "ReplicationController"), ("batch", "Job")})
"""Kinds whose dependents stay unless the request says otherwise, as they did before there was a collector."""
NEVER_OWNERS: Final = frozenset({("", "Event"), ("events.k8s.io", "Event")})
"""Kinds that the garbage collector does not look at: no finalizer of its may be set, for nobody would take it away."""
JOB: Final = ("batch", "Job")
JOB_WARNING: Final = (
    "child pods are preserved by default when jobs are deleted; "
    "set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning"
)
MAX_GRACE: Final = (1 << 31) - 1
"""Seconds, 68 years. Whatever the pod says: a deletionTimestamp beyond the year 9999 could not be read by anybody."""


def check(old: Object, kind: Kind, options: Mapping[str, Any]) -> None:
    """Raises 400 for an unknown policy, 409 where a precondition names another incarnation or version."""
    policy = options.get("propagation")
    if policy and policy not in POLICIES:
        raise errors.bad_request(f"propagationPolicy is {errors.show(policy)}; use {', '.join(POLICIES)}")
    uid, rv = options.get("uid"), options.get("rv")
    other = bool(uid) and uid != old.uid
    if not other and (not rv or str(rv) == str(old.rv)):
        return
    name, wanted, found = ("UID", uid, old.uid) if other else ("ResourceVersion", rv, old.rv)
    if kind.gk == NAMESPACE:
        detail = f"Precondition failed: {name} in precondition: {wanted}, {name} in object meta: {found}"
        raise errors.conflict(kind.plural, old.key.name, detail, kind.group)
    happened = "deleted and then recreated" if other else "modified"
    detail = (
        f"the {name} in the precondition ({preconditions.plain(wanted)}) does not match the {name} in record "
        f"({found}). The object might have been {happened}"
    )
    raise errors.conflict(kind.kind, old.key.name, detail, kind.group)


def warnings(kind: Kind, options: Mapping[str, Any]) -> tuple[str, ...]:
    """What the client should know about the defaults it relied on."""
    return (JOB_WARNING,) if kind.gk == JOB and not options.get("propagation") else ()


def after(kind: Kind, old: Object, options: Mapping[str, Any], now: int) -> Object | None:
    """The next version: None when the object goes now, `old` itself when there is nothing to write."""
    if kind.gk == NAMESPACE:
        meta = old.meta.value
        if "deletionTimestamp" not in meta:
            return _terminating(old, _finalizers(kind, old, options), now)
        if (old.spec_value or EMPTY).finalizers:
            return old
    if kind.gk == POD:
        return _after_graceful(kind, old, options, now)
    return _after_finalizers(old, _finalizers(kind, old, options), now)


def _finalizers(kind: Kind, old: Object, options: Mapping[str, Any]) -> list[str]:
    """The finalizers the object is to have while it is deleted: what the request says goes before what the object
    has, and that before the kind's default."""
    before = old.meta.value.get("finalizers") or ()
    if not before and not options.get("propagation") and kind.gk not in ORPHANS_BY_DEFAULT:
        return []
    kept = [name for name in before if name not in (FOREGROUND, ORPHAN)]
    wanted = ""
    if kind.gk not in NEVER_OWNERS:
        policy = options.get("propagation")
        given = [name for name in before if name in (FOREGROUND, ORPHAN)]
        if policy:
            wanted = POLICIES[policy]
        elif given:
            wanted = given[0]
        elif kind.gk in ORPHANS_BY_DEFAULT:
            wanted = ORPHAN
    finalizers = [*kept, wanted] if wanted else kept
    return list(before) if sorted(before) == sorted(finalizers) else finalizers


def _after_finalizers(old: Object, finalizers: list[str], now: int) -> Object | None:
    """Of an object that goes at once, but for its finalizers."""
    if not finalizers:
        return None
    meta = old.meta.value
    begun = meta.get("deletionTimestamp")
    time = time_text(now // MICRO) if begun is None or parse_time(begun) > now else begun
    changed = _with_finalizers({**meta, "deletionTimestamp": time, "deletionGracePeriodSeconds": 0}, finalizers)
    if begun is None and "generation" in meta:
        changed["generation"] += 1
    return _version(old, changed)


def _after_graceful(kind: Kind, old: Object, options: Mapping[str, Any], now: int) -> Object | None:
    """Of a pod: its node is given time to end it."""
    meta = old.meta.value
    second = now // MICRO
    begun, last = "deletionTimestamp" in meta, meta.get("deletionGracePeriodSeconds") or 0
    if begun and not last:
        return _after_finalizers(old, _finalizers(kind, old, options), now)
    if begun:
        asked = options.get("grace")
        if asked is None or preconditions.whole(options, "grace") >= last:
            return old  # only a shorter grace changes anything, finalizers included
        grace = preconditions.whole(options, "grace")
        end = parse_time(meta["deletionTimestamp"]) // MICRO - last + grace  # counted from the first request
        if end < second:
            end, grace = second, min(grace, 1)
    else:
        grace = _grace(old, options)
        end = second + grace
    finalizers = _finalizers(kind, old, options)
    if not grace and not finalizers:
        return None
    changed = {**meta, "deletionTimestamp": time_text(end), "deletionGracePeriodSeconds": grace}
    if not begun and "generation" in meta:
        changed["generation"] += 1
    return _version(old, _with_finalizers(changed, finalizers))


def last_seen(kind: Kind, now: int) -> Callable[[Object], Object] | None:
    """Makes what is shown of a pod that goes at once: it was being deleted, if only for a moment."""
    return partial(_ended, now) if kind.gk == POD else None


def _ended(now: int, old: Object) -> Object:
    meta = {**old.meta.value, "deletionGracePeriodSeconds": 0}
    if "deletionTimestamp" not in meta:
        meta["deletionTimestamp"] = time_text(now // MICRO)
        if "generation" in meta:
            meta["generation"] += 1
    return old.replace(meta=Section(Frozen(meta)), rv=0)


def _terminating(old: Object, finalizers: list[str], now: int) -> Object:
    """A namespace after the first request: it goes when its content and its spec.finalizers are gone."""
    changed = _with_finalizers({**old.meta.value, "deletionTimestamp": time_text(now // MICRO)}, finalizers)
    new = _version(old, changed)
    new.status = Section(Frozen({**(old.status_value or EMPTY), "phase": "Terminating"}))
    return new


def _grace(old: Object, options: Mapping[str, Any]) -> int:
    """Seconds until a pod goes, MAX_GRACE at most. Pods die slowly only where somebody runs them."""
    if options.get("grace") == 0:  # before the status is read
        return 0
    if not old.node or (old.status is not None and old.status.peek().get("phase") in ("Succeeded", "Failed")):
        return 0
    if options.get("grace") is not None:
        return min(preconditions.whole(options, "grace"), MAX_GRACE)
    configured = (old.spec_value or EMPTY).get("terminationGracePeriodSeconds")
    if configured is None:
        return 30
    return min(1 if configured < 0 else int(configured), MAX_GRACE)


def _with_finalizers(meta: dict[str, Any], finalizers: list[str]) -> dict[str, Any]:
    if finalizers:
        meta["finalizers"] = FrozenList(finalizers)
    else:
        meta.pop("finalizers", None)
    return meta


def _version(old: Object, meta: dict[str, Any]) -> Object:
    """`old` with other metadata; itself when they are the same."""
    section = Section(Frozen(meta))
    return old if section.digest == old.meta.digest else old.replace(meta=section, rv=0)
