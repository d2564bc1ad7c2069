"""Questions about users and rights that are answered and not stored: access reviews, rules reviews, who am I.

Each function takes the parsed object and gives the answer as a dict. Source: pkg/registry/authorization and
pkg/registry/authentication of Kubernetes 1.36 (what is checked, wording, which part of the body comes back).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from steersman.api import errors, field_select, taking
from steersman.api.access.authz import Grant, Rbac
from steersman.api.access.rbac import Ask
from steersman.api.access.user import User, node_of
from steersman.api.by import By
from steersman.api.errors import Cause
from steersman.api.kinds import Kind
from steersman.api.preconditions import WRONG_NAMESPACE
from steersman.api.rules import internal
from steersman.api.schema import Schema
from steersman.kernel.store import Store
from steersman.kernel.value import EMPTY

AUTHORIZATION: Final = "authorization.k8s.io"
AUTHENTICATION: Final = "authentication.k8s.io"
EXACTLY_ONE: Final = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
ACCESS: Final = frozenset(
    {
        (AUTHORIZATION, "SubjectAccessReview"),
        (AUTHORIZATION, "SelfSubjectAccessReview"),
        (AUTHORIZATION, "LocalSubjectAccessReview"),
    }
)
RULES: Final = (AUTHORIZATION, "SelfSubjectRulesReview")
SELF: Final = (AUTHENTICATION, "SelfSubjectReview")
TOKEN: Final = (AUTHENTICATION, "TokenReview")
REVIEWS: Final = frozenset({*ACCESS, RULES, SELF, TOKEN})
"""Kinds that are only ever asked."""


class Named(NamedTuple):
    """A kind of body that has no kind of its own in the registry: a subresource's."""

    kind: str
    group: str
    version: str
    schema: Schema
    custom: bool = False

    @property
    def api_version(self) -> str:
        """The apiVersion of such a body."""
        return f"{self.group}/{self.version}"


def take(kind: Kind | Named, body: Any, validation: str, warnings: list[str]) -> dict[str, Any]:
    """The body as an object of `kind`: its parts checked against the schema. Raises `ApiError` 400."""
    if not isinstance(body, dict):
        raise errors.bad_request(f"the body must be a {kind.kind} object, not {type(body).__name__}")
    for field, wanted in (("apiVersion", kind.api_version), ("kind", kind.kind)):
        if body.get(field, wanted) != wanted:
            given = errors.show(body[field])
            raise errors.bad_request(f"{field} in the body is {given}, but the request is for {wanted}")
    by = By("unknown", "", validation, "")
    named: Any = kind  # of either, only what both have is used
    mode = taking.Mode(False, "", by, warnings)
    out: dict[str, Any] = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": EMPTY}
    for part, value in body.items():
        schema = kind.schema.fields.get(part)
        if part in ("apiVersion", "kind") or value is None:
            continue
        if schema is None:
            warnings.append(f'unknown field "{part}"')
        elif (taken := taking.take_in(named, schema, part, value, mode)) is not None:
            out[part] = _without_empty(taken) if part == "spec" else taken
    return out


def _without_empty(value: Any) -> Any:
    """A spec as Go writes it out again: no part of a review's is there when it is the empty text."""
    if not isinstance(value, dict):
        return value
    return {name: _without_empty(item) for name, item in value.items() if item != ""}


def access(rbac: Rbac, store: Store, user: User, kind: Kind, review: dict[str, Any], namespace: str) -> dict[str, Any]:
    """A SubjectAccessReview, one for a namespace, or one of the asking user. Raises `ApiError` 400, 422."""
    spec: Mapping[str, Any] = review.get("spec") or EMPTY
    if kind.kind == "LocalSubjectAccessReview":
        given = review["metadata"].get("namespace")
        if given and given != namespace:
            raise errors.bad_request(f"{WRONG_NAMESPACE} ({errors.show(given)}, not {namespace})")
        review = {**review, "metadata": {**review["metadata"], "namespace": namespace}}
    causes = _access_causes(kind, review, spec)
    if causes:
        raise errors.invalid("", "", causes, kind.group)  # which leaves the kind out, as kube-apiserver does
    if kind.kind == "SelfSubjectAccessReview":
        who = user
    else:
        who = User.of(spec, "user")
    decision = rbac.decide(store, who, _asked(spec))
    status: dict[str, Any] = {"allowed": decision.allowed}
    if decision.reason:
        status["reason"] = decision.reason
    return {**review, "spec": spec, "status": status}


def _asked(spec: Mapping[str, Any]) -> Ask:
    path = spec.get("nonResourceAttributes")
    if path is not None:
        return Ask(path.get("verb") or "", path=path.get("path") or "/")
    of = spec["resourceAttributes"]
    parts = ("verb", "group", "resource", "subresource", "namespace", "name")
    verb, group, resource, part, namespace, name = (str(of.get(part) or "") for part in parts)
    fields = demanded(of.get("fieldSelector") or EMPTY)
    return Ask(verb, group, resource, part, namespace, name, fields=fields)


def demanded(selector: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The fields and values that a field selector of a review demands; what cannot be read demands nothing."""
    found: list[tuple[str, str]] = []
    if selector.get("rawSelector"):
        found += field_select.demanded(selector["rawSelector"])
    for term in selector.get("requirements") or ():
        values: Any = term.get("values") or ()
        if term.get("operator") == "In" and len(values) == 1:
            found.append((term.get("key") or "", values[0]))
    return tuple(found)


def _access_causes(kind: Kind, review: Mapping[str, Any], spec: Mapping[str, Any]) -> list[Cause]:
    causes = []
    of, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if of is not None and path is not None:
        detail = "cannot be specified in combination with resourceAttributes"
        shown = internal.shown(path, internal.PATH_ATTRIBUTES)
        causes.append(Cause.invalid("spec.nonResourceAttributes", shown, detail))
    if of is None and path is None:
        causes.append(Cause.invalid("spec.resourceAttributes", None, EXACTLY_ONE))
    if kind.kind != "SelfSubjectAccessReview" and not spec.get("user") and not spec.get("groups"):
        causes.append(Cause.invalid("spec.user", "", "at least one of user or group must be specified"))
    for name in ("fieldSelector", "labelSelector"):
        causes += _selector_causes((of or EMPTY).get(name), f"spec.resourceAttributes.{name}")
    local = kind.kind == "LocalSubjectAccessReview"
    allowed = ("namespace", "managedFields") if local else ("managedFields",)
    meta = review["metadata"]
    if any(value for name, value in meta.items() if name not in allowed):
        detail = "must be empty except for namespace" if local else "must be empty"
        causes.append(Cause.invalid("metadata", meta, detail))
    if local and of is not None and (of.get("namespace") or "") != (meta.get("namespace") or ""):
        given = of.get("namespace") or ""
        causes.append(Cause.invalid("spec.resourceAttributes.namespace", given, "must match metadata.namespace"))
    if local and path is not None:
        causes.append(Cause.invalid("spec.nonResourceAttributes", path, "disallowed on this kind of request"))
    return causes


def _selector_causes(selector: Mapping[str, Any] | None, path: str) -> list[Cause]:
    """What is wrong about a selector, whether or not anybody looks at it: RBAC grants all objects or none."""
    if selector is None:
        return []
    raw, terms = selector.get("rawSelector"), selector.get("requirements")
    if raw and terms:
        return [Cause.invalid(f"{path}.rawSelector", raw, "may not specified at the same time as requirements")]
    if not raw and not terms:
        detail = f"when {path} is specified, requirements or rawSelector is required"
        return [Cause.required(f"{path}.requirements", detail)]
    return []


def rules(rbac: Rbac, store: Store, user: User, kind: Kind, review: dict[str, Any]) -> dict[str, Any]:
    """A SelfSubjectRulesReview: the rules in force for the asking user in one namespace. Raises `ApiError` 400."""
    namespace = (review.get("spec") or EMPTY).get("namespace")
    if not namespace:
        raise errors.bad_request("no namespace on request")
    grants: list[Grant] = rbac.grants(store, user, namespace)
    resources: list[dict[str, Any]] = []
    paths: list[dict[str, Any]] = []
    for rule in [rule for grant in grants for rule in grant.rules]:
        if rule.resources:
            parts = (("apiGroups", rule.groups), ("resources", rule.resources), ("resourceNames", rule.names))
            resources.append({"verbs": list(rule.verbs), **{name: list(part) for name, part in parts if part}})
        if rule.urls:
            paths.append({"verbs": list(rule.verbs), "nonResourceURLs": list(rule.urls)})
    status: dict[str, Any] = {"resourceRules": resources, "nonResourceRules": paths, "incomplete": False}
    broken = list(dict.fromkeys([grant.error for grant in grants if grant.error]))
    if node_of(user) is not None:
        status["incomplete"] = True
        broken.insert(0, "node authorizer does not support user rule resolution")
    if broken:
        status["evaluationError"] = f"[{', '.join(broken)}]" if len(broken) > 1 else broken[0]
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {}, "spec": {}, "status": status}


def myself(user: User, kind: Kind, time: str) -> dict[str, Any]:
    """A SelfSubjectReview: who the server takes the client for."""
    meta = {"creationTimestamp": time}
    status = {"userInfo": user.json()}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, "status": status}


def token_status(user: User | None, audiences: tuple[str, ...], problem: str) -> dict[str, Any]:
    """The status of a TokenReview; `user` None when the token is no good, and `problem` why."""
    if user is None:
        return {"user": {}, **({"error": problem} if problem else {})}
    return {"authenticated": True, "user": user.json(), "audiences": list(audiences)}
