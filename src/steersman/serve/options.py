"""Query parameters and DeleteOptions: read, checked as Kubernetes checks them, and refused in its words.

Source of the facts: apimachinery `pkg/apis/meta/v1/validation` and `pkg/apis/meta/internalversion/validation`,
release 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from steersman.api import errors, go_json
from steersman.api.begin import MAX_VERSION
from steersman.api.errors import Cause
from steersman.api.field_select import escape, required_name
from steersman.api.kinds import Kinds
from steersman.api.preconditions import SCHEME
from steersman.api.schema import Schema
from steersman.serve.message import Query

MAX_DIGITS: Final = 19
"""Of a whole number: all that are shorter fit into 64 bits."""
MAX_MANAGER: Final = 128
"""Bytes of a field manager, as in Kubernetes."""
VALIDATIONS: Final = ("", "Ignore", "Strict", "Warn")
PROPAGATIONS: Final = ("Foreground", "Background", "Orphan")
META: Final = "meta.k8s.io"
DELETE_OPTIONS: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"


CONTINUED: Final = "resourceVersionMatch is forbidden when continue is provided"


class ListOptions(NamedTuple):
    """What a list, watch or deletecollection asks for."""

    labels: str = ""
    fields: str = ""
    limit: int = 0
    token: str = ""
    rev: int | None = None
    """The resourceVersion; None: not given."""
    match: str = ""
    """resourceVersionMatch: Exact | NotOlderThan | "" """
    watch: bool = False
    bookmarks: bool = False
    initial_events: bool | None = None
    timeout: float | None = None


NOBODY: Final = "unknown"
"""The field manager of a client that does not say what it is."""


def manager_of(query: Query, user_agent: str) -> str:
    """The field manager: what the client names (`write_options` has judged it), else how its User-Agent begins."""
    name = query.get("fieldManager")
    if not name:
        prefix = user_agent.partition("/")[0]
        if not prefix.isprintable():
            prefix = "".join([char for char in prefix if char.isprintable()])
        return prefix[:MAX_MANAGER] or NOBODY
    return name


def _manager_causes(name: str) -> list[Cause]:
    """What is wrong with a field manager that a client names."""
    causes = []
    if len(name.encode("utf-8", "replace")) > MAX_MANAGER:
        causes.append(Cause.too_long("fieldManager", MAX_MANAGER))
    for index, char in enumerate(name):
        if not char.isprintable():
            at = len(name[:index].encode("utf-8", "replace"))
            detail = f"invalid character U+{ord(char):04X} (at position {at})"
            causes.append(Cause.invalid("fieldManager", name, detail))
            break
    return causes


def write_options(query: Query, kind: str) -> dict[str, Any]:
    """The options of a create, update or patch, for `effect.Request.options`. Raises ApiError 422.

    `kind` is the options' kind in error messages: CreateOptions, UpdateOptions, PatchOptions.
    """
    options: dict[str, Any] = {}
    causes = _manager_causes(query.get("fieldManager"))
    dry_run = query.all("dryRun")
    if any(value != "All" for value in dry_run):
        causes.append(Cause.unsupported("dryRun", dry_run, ["All"]))
    elif dry_run:
        options["dry_run"] = True
    validation = query.get("fieldValidation")
    if validation and validation not in VALIDATIONS:
        causes.append(Cause.unsupported("fieldValidation", validation, VALIDATIONS))
    options["validation"] = validation or "Warn"
    if causes:
        raise errors.invalid(kind, "", causes, META)
    return options


def list_options(query: Query) -> ListOptions:
    """The options of a list or watch. Raises ApiError 400, 422."""
    watch = query.flag("watch")
    token, match = query.get("continue"), query.get("resourceVersionMatch")
    version = query.get("resourceVersion")
    initial = query.flag("sendInitialEvents") if "sendInitialEvents" in query else None
    options = ListOptions(
        labels=query.get("labelSelector"),
        fields=query.get("fieldSelector"),
        limit=_integer(query, "limit") if watch or version != "0" else 0,  # what may be old is not cut into pages
        token=token,
        rev=revision(version) if version else None,
        match=match,
        watch=watch,
        bookmarks=query.flag("allowWatchBookmarks"),
        initial_events=initial,
        timeout=_timeout(query),
    )
    causes = _watch_causes(options) if watch else _list_causes(options)
    if causes:
        raise errors.invalid("ListOptions", "", causes, META)
    if token and version not in ("", "0") and not watch:
        raise errors.bad_request("specifying resource version is not allowed when using continue")
    return options


def watch_named(options: ListOptions, name: str) -> ListOptions:
    """What a path below `/watch/` asks for, of one object if it names one. Raises ApiError 400."""
    fields = f"metadata.name={escape(name)}" if name else options.fields
    if name and options.fields and required_name(options.fields) != name:
        raise errors.bad_request("fieldSelector metadata.name doesn't match requested name")
    return options._replace(watch=True, fields=options.fields or fields)


def _list_causes(options: ListOptions) -> list[Cause]:
    match = options.match
    causes = []
    if options.initial_events is not None:
        causes.append(Cause.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    if not match:
        return causes
    if options.rev is None:
        detail = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        causes.append(Cause.forbidden("resourceVersionMatch", detail))
    if options.token:
        causes.append(Cause.forbidden("resourceVersionMatch", CONTINUED))
    if match not in ("Exact", "NotOlderThan"):
        causes.append(Cause.unsupported("resourceVersionMatch", match, ["Exact", "NotOlderThan", ""]))
    if match == "Exact" and options.rev == 0:
        detail = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
        causes.append(Cause.forbidden("resourceVersionMatch", detail))
    return causes


def _watch_causes(options: ListOptions) -> list[Cause]:
    match, initial = options.match, options.initial_events
    if not match and initial is None and not options.rev:
        match, initial = "NotOlderThan", True  # what a watch without a revision means
    causes = []
    if initial is not None and match != "NotOlderThan":
        detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        causes.append(Cause.forbidden("resourceVersionMatch", detail))
    if not match:
        return causes
    if initial is None:
        detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        causes.append(Cause.forbidden("resourceVersionMatch", detail))
    if match != "NotOlderThan":
        causes.append(Cause.unsupported("resourceVersionMatch", match, ["NotOlderThan"]))
    if options.token:
        causes.append(Cause.forbidden("resourceVersionMatch", CONTINUED))
    return causes


def revision(text: str) -> int:
    """A resourceVersion. Raises ApiError 400."""
    if not text.isascii() or not text.isdigit() or len(text) > MAX_VERSION:
        problem = f"strconv.ParseUint: parsing {errors.quote(text[:60])}: invalid syntax"
        cause = f"resourceVersion: Invalid value: {errors.quote(text[:60])}: {problem}"
        raise errors.bad_request(f"invalid resource version: {cause}")
    return int(text)


def _integer(query: Query, name: str) -> int:
    text = query.get(name)
    if not text:
        return 0
    return max(0, _parsed(text))  # less than nothing is not given


def _parsed(text: str) -> int:
    """A whole number of 64 bits. Raises ApiError 400 in Go's words."""
    digits = text[1:] if text[0] in "+-" else text
    known = digits.isascii() and digits.isdigit()
    if known and len(digits) < MAX_DIGITS:
        return int(text)
    problem = "value out of range" if known else "invalid syntax"
    raise errors.bad_request(f"strconv.ParseInt: parsing {errors.quote(text[:60])}: {problem}")


def _timeout(query: Query) -> float | None:
    """timeoutSeconds of a watch; `timeout=2s` is for short requests and is not ours to keep."""
    text = query.get("timeoutSeconds")
    return float(_parsed(text)) or None if text else None  # less than nothing is over at once


def delete_options(query: Query, body: Any) -> dict[str, Any]:
    """The options of a delete, from its body (DeleteOptions) or else its query. Raises ApiError 400, 422."""
    given = _from_body(body, Kinds.definition(DELETE_OPTIONS)) if body is not None else _from_query(query)
    options: dict[str, Any] = {}
    causes = []
    grace, propagation = given.get("gracePeriodSeconds"), given.get("propagationPolicy")
    if grace is not None:
        options["grace"] = grace if grace >= 0 else 1  # Kubernetes reads a negative grace as one second
    if propagation and propagation not in PROPAGATIONS:
        causes.append(Cause.unsupported("propagationPolicy", propagation, [*PROPAGATIONS, "nil"]))
    orphan = given.get("orphanDependents")
    if orphan is not None and propagation:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        causes.append(Cause.invalid("propagationPolicy", propagation, detail))
    if orphan is not None:
        propagation = "Orphan" if orphan else "Background"
    if propagation:
        options["propagation"] = propagation
    dry_run = given.get("dryRun") or []
    if any(value != "All" for value in dry_run):
        causes.append(Cause.unsupported("dryRun", dry_run, ["All"]))
    elif dry_run:
        options["dry_run"] = True
    if causes:
        raise errors.invalid("DeleteOptions", "", causes, META)
    preconditions = given.get("preconditions") or {}
    options["uid"] = preconditions.get("uid") or ""
    options["rv"] = preconditions.get("resourceVersion") or ""
    return options


def _from_body(body: Any, schema: Schema) -> Mapping[str, Any]:
    if not isinstance(body, dict):
        raise errors.bad_request("the body of a delete is a DeleteOptions object, or empty")
    name, version = body.get("kind") or "DeleteOptions", body.get("apiVersion") or "v1"
    if name != "DeleteOptions":
        shown = f"no kind {errors.show(name)} is registered for version {errors.show(version)}"
        raise errors.bad_request(f"{shown} in scheme {SCHEME}")
    wanted: dict[str, type] = {
        "gracePeriodSeconds": int,
        "propagationPolicy": str,
        "orphanDependents": bool,
        "dryRun": list,
        "preconditions": dict,
    }
    for name in schema.fields:
        value = body.get(name)
        if value is not None and name in wanted and type(value) is not wanted[name]:
            wrong = go_json.complaint("DeleteOptions", schema.fields[name], name, value)
            raise errors.bad_request(wrong or f"DeleteOptions.{name}: {errors.show(value)} is of the wrong type")
    return body


def _from_query(query: Query) -> Mapping[str, Any]:
    given: dict[str, Any] = {"dryRun": query.all("dryRun"), "propagationPolicy": query.get("propagationPolicy")}
    grace = query.get("gracePeriodSeconds")
    if grace:
        given["gracePeriodSeconds"] = _parsed(grace)
    if "orphanDependents" in query:
        given["orphanDependents"] = query.flag("orphanDependents")
    return given
