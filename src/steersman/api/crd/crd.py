"""What the server adds to a CustomResourceDefinition as it is written: its status, and the start of its end.

Kubernetes leaves that to controllers inside its API server, which act some milliseconds later: names are accepted
unless another definition of the group has them, then the kind is established; deletion waits for the instances. Here
the status is part of the write itself, so whoever sees a definition can use it. Names that another definition gives
free are granted, and instances deleted, by a controller (`controllers.definition`). Source of the facts:
apiextensions-apiserver 0.36, pkg/controller/status, pkg/controller/establish, pkg/registry/customresourcedefinition.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from steersman.api import ca_bundle, errors, formats
from steersman.api.crd.crd_schema_rules import nodes
from steersman.api.crd.definition import CRD, condition_holds
from steersman.api.errors import Cause
from steersman.api.times import time_text
from steersman.kernel.effect import MICRO, Call, Commit, Outcome, Request
from steersman.kernel.object import Object, Section
from steersman.kernel.store import Store
from steersman.kernel.value import EMPTY, freeze

FINALIZER: Final = "customresourcecleanup.apiextensions.k8s.io"
APPROVED: Final = "api-approved.kubernetes.io"
PROTECTED: Final = re.compile(r"(.*\.)?(k8s\.io|kubernetes\.io)")
_NAMES: Final = ("plural", "singular", "kind", "listKind", "shortNames", "categories")


def settle(store: Store, request: Request, outcome: Outcome) -> Outcome:
    """The outcome of a write to a definition, with what the server adds. Raises `ApiError` 422.

    A write that changes nothing has the names examined again: another definition may have given them free."""
    if isinstance(outcome, Call):
        resume = outcome.resume
        return outcome._replace(resume=lambda answer: settle(store, request, resume(answer)))
    time = time_text(request.now // MICRO)
    if isinstance(outcome, Commit):
        old, new = outcome.old, outcome.new
        if request.verb == "delete" and old is not None and "deletionTimestamp" not in old.meta.value:
            return outcome._replace(new=_begin_to_end(old, time))
        if new is None or request.subresource:
            if new is not None:
                _check_status(new)
            return outcome
        told = _format_warnings(old, new)
        return outcome._replace(new=_written(store, old, new, time), warnings=(*outcome.warnings, *told))
    if request.verb not in ("create", "update", "patch", "apply") or request.subresource or outcome.obj is None:
        return outcome
    old = store.get(request.key)
    new = _written(store, old, outcome.obj, time)
    if request.options.get("dry_run"):
        return outcome._replace(obj=new)
    if new is outcome.obj or old is None:
        return outcome
    return Commit(request.key, old, new.replace(rv=0), outcome.code, outcome.warnings)


def _written(store: Store, old: Object | None, new: Object, time: str) -> Object:
    """A new version whose spec may be another: judged against its name and its past, its status brought up to date."""
    spec, before = new.spec_value or EMPTY, EMPTY if old is None else (old.status_value or EMPTY)
    causes = (_name_causes(new, spec) if old is None else []) + _approval_causes(old, new, spec)
    if old is not None:
        established = condition_holds(before, "Established")
        causes += _change_causes(old.spec_value or EMPTY, spec, established)
        causes += _bundle_causes(old.spec_value or EMPTY, spec) if established else []
    storage = next((v["name"] for v in spec.get("versions") or () if v.get("storage")), "")
    versions = list(before.get("storedVersions") or ())
    if storage not in versions:
        versions.append(storage)
    causes += _stored_causes(spec, versions)
    if causes:
        raise errors.invalid("CustomResourceDefinition", new.key.name, causes, CRD[0])
    status = named({**before, "storedVersions": versions}, spec, taken_names(store, new), time)
    section = Section(freeze(status))
    if new.status is not None and section.digest == new.status.digest:
        return new
    return new.replace(status=section)


def taken_names(store: Store, obj: Object) -> tuple[set[str], set[str]]:
    """Resource names and kinds that other definitions of the group have been granted."""
    group = (obj.spec_value or EMPTY).get("group")
    resources: set[str] = set()
    kinds: set[str] = set()
    for other in store.list(CRD):
        if other.key == obj.key or (other.spec_value or EMPTY).get("group") != group:
            continue
        names = (other.status_value or EMPTY).get("acceptedNames") or EMPTY
        resources.update(names.get(field) or "" for field in ("plural", "singular"))
        resources.update(names.get("shortNames") or ())
        kinds.update(names.get(field) or "" for field in ("kind", "listKind"))
    return resources - {""}, kinds - {""}


def named(
    status: Mapping[str, Any], spec: Mapping[str, Any], taken: tuple[set[str], set[str]], time: str
) -> dict[str, Any]:
    """The status with acceptedNames and the conditions NamesAccepted and Established brought up to date."""
    asked: Mapping[str, Any] = spec.get("names") or EMPTY
    accepted: dict[str, Any] = dict(status.get("acceptedNames") or EMPTY)
    if accepted == {name: asked[name] for name in _NAMES if name in asked} and condition_holds(status, "Established"):
        return dict(status)
    resources, kinds = taken
    problem: tuple[str, str] | None = None
    for field, used in (("plural", resources), ("singular", resources), ("shortNames", resources),
                        ("kind", kinds), ("listKind", kinds)):  # fmt: skip
        wanted, had = asked.get(field), accepted.get(field)
        names = list(wanted or ()) if field == "shortNames" else [wanted]
        mine = set(had or ()) if field == "shortNames" else {had}
        clashes = [f'"{name}" is already in use' for name in names if name not in mine and name in used]
        if clashes:
            reason = f"{field[0].upper()}{field[1:]}Conflict"
            problem = reason, clashes[0] if len(clashes) == 1 else f"[{', '.join(clashes)}]"
        elif wanted is None:
            accepted.pop(field, None)
        else:
            accepted[field] = wanted
    accepted["categories"] = asked.get("categories")
    if problem:
        found = ("False", *problem)
    else:
        found = ("True", "NoConflicts", "no conflicts found")
    conditions = with_condition(status.get("conditions") or (), "NamesAccepted", found, time)
    if not any(c.get("type") == "Established" and c.get("status") == "True" for c in conditions):
        established = ("False", "NotAccepted", "not all names are accepted")
        client = ((spec.get("conversion") or EMPTY).get("webhook") or EMPTY).get("clientConfig") or EMPTY
        if not problem and ca_bundle.fault(client.get("caBundle")):
            established = ("False", "InvalidCABundle", "The conversion webhook CABundle is invalid")
        elif not problem:
            established = ("True", "InitialNamesAccepted", "the initial names have been accepted")
        conditions = with_condition(conditions, "Established", established, time)
    kept = {name: accepted[name] for name in _NAMES if accepted.get(name)}
    kept = {"kind": "", "plural": "", **kept}
    return {**status, "acceptedNames": kept, "conditions": conditions}


def with_condition(conditions: Any, name: str, found: tuple[str, str, str], time: str) -> list[Any]:
    """Conditions with one set to (status, reason, message); its time moves only with its status."""
    status, reason, message = found
    out = list(conditions)
    for index, condition in enumerate(out):
        if condition.get("type") == name:
            if condition.get("status") == status:
                time = condition.get("lastTransitionTime", time)
            out[index] = {**condition, **_condition(name, status, reason, message, time)}
            return out
    return [*out, _condition(name, status, reason, message, time)]


def _condition(name: str, status: str, reason: str, message: str, time: str) -> dict[str, str]:
    return {"type": name, "status": status, "reason": reason, "message": message, "lastTransitionTime": time}


def _begin_to_end(old: Object, time: str) -> Object:
    """The version of a definition whose deletion begins: its instances go first."""
    meta = {**old.meta.value, "deletionTimestamp": time}
    finalizers = list(meta.get("finalizers") or ())
    if FINALIZER not in finalizers:
        finalizers.append(FINALIZER)
    meta["finalizers"] = finalizers
    status = dict(old.status_value or EMPTY)
    message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    found = ("True", "InstanceDeletionPending", message)
    status["conditions"] = with_condition(status.get("conditions") or (), "Terminating", found, time)
    return old.replace(meta=Section(freeze(meta)), status=Section(freeze(status)), rv=0)


def _format_warnings(old: Object | None, new: Object) -> list[str]:
    """What a writer is told of formats that nobody knows, and that the definition did not have."""
    if old is not None and old.spec is new.spec:
        return []
    before = set(_unknown_formats(old)) if old is not None else set()
    return [f"unrecognized format {errors.quote(name)}" for name in _unknown_formats(new) if name not in before]


def _unknown_formats(obj: Object) -> list[str]:
    out = []
    for version in (obj.spec_value or EMPTY).get("versions") or ():
        for node in nodes((version.get("schema") or EMPTY).get("openAPIV3Schema") or EMPTY):
            name = node.get("format")
            if name and formats.unknown(node.get("type") or "", name):
                out.append(name)
    return out


def _name_causes(new: Object, spec: Mapping[str, Any]) -> list[Cause]:
    needed = f"{(spec.get('names') or EMPTY).get('plural', '')}.{spec.get('group', '')}"
    if new.key.name == needed:
        return []
    return [Cause.invalid("metadata.name", new.key.name, 'must be spec.names.plural+"."+spec.group')]


def _approval_causes(old: Object | None, new: Object, spec: Mapping[str, Any]) -> list[Cause]:
    """Groups of Kubernetes itself are for definitions that its community approved."""
    if not PROTECTED.fullmatch(str(spec.get("group", ""))):
        return []
    text = _approval(new)
    if old is not None and _approval(old) == text:
        return []
    at = f"metadata.annotations[{APPROVED}]"
    if not text:
        problem = f"protected groups must have approval annotation {errors.quote(APPROVED)}, see "
        return [Cause.required(at, problem + "https://github.com/kubernetes/enhancements/pull/1111")]
    if text.startswith(("unapproved", "http://", "https://")):
        return []
    problem = f"protected groups must have approval annotation {errors.quote(APPROVED)} with either a URL or a reason"
    return [
        Cause.invalid(
            at, text, problem + ' starting with "unapproved", see https://github.com/kubernetes/enhancements/pull/1111'
        )
    ]


def _approval(obj: Object) -> str:
    return str((obj.meta.value.get("annotations") or EMPTY).get(APPROVED) or "")


def _change_causes(old: Mapping[str, Any], new: Mapping[str, Any], established: bool) -> list[Cause]:
    causes = []
    before, after = old.get("names") or EMPTY, new.get("names") or EMPTY
    fixed = [("spec.group", old.get("group"), new.get("group"))]
    fixed.append(("spec.names.plural", before.get("plural"), after.get("plural")))
    if established:
        fixed.insert(0, ("spec.scope", old.get("scope"), new.get("scope")))
        fixed.insert(1, ("spec.names.kind", before.get("kind"), after.get("kind")))
    for path, was, wanted in fixed:
        if was != wanted:
            causes.append(Cause.invalid(path, wanted, "field is immutable"))
    return causes


def _bundle_causes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Cause]:
    """Authorities that cannot be read are let pass before a kind is served, and where there were such before."""
    before, after = [
        ((spec.get("conversion") or EMPTY).get("webhook") or EMPTY).get("clientConfig") or EMPTY for spec in (old, new)
    ]
    text, was = after.get("caBundle"), before.get("caBundle")
    problem = "" if text == was else ca_bundle.fault(text)
    if not problem or (was and ca_bundle.fault(was)):
        return []
    return [Cause.invalid("spec.conversion.webhookClientConfig.caBundle", text, problem)]


def _stored_causes(spec: Mapping[str, Any], stored: list[str]) -> list[Cause]:
    names = [version.get("name") for version in spec.get("versions") or ()]
    detail = (
        "missing from spec.versions; {0} was previously a storage version, and must remain in spec.versions until a "
        "storage migration ensures no data remains persisted in {0} and removes {0} from status.storedVersions"
    )
    return [
        Cause.invalid(f"status.storedVersions[{index}]", name, detail.format(name))
        for index, name in enumerate(stored)
        if name not in names
    ]


def _check_status(new: Object) -> None:
    """What a client may not make of a status."""
    stored = (new.status_value or EMPTY).get("storedVersions")
    if not stored:
        cause = Cause.invalid("status.storedVersions", [], "must have at least one stored version")
        raise errors.invalid("CustomResourceDefinition", new.key.name, [cause], CRD[0])
