"""Tokens of service accounts: what they claim, and the requests that make them.

Pure: who signs is asked by `Call("sign", ("token", CLAIMS))`, claims as canonical JSON; the answer is the token as
text. Check has a model for it, run a key. Source of the facts (claims, checks, wording): Kubernetes 1.36,
pkg/registry/core/serviceaccount/storage/token.go, pkg/serviceaccount and pkg/controller/serviceaccount.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import orjson

from steersman.api import errors, fields
from steersman.api.access import review
from steersman.api.access.machine import Machine
from steersman.api.access.user import account_name
from steersman.api.admission.plugin import CREATE, Attempt
from steersman.api.errors import Cause
from steersman.api.kinds import Kind, Kinds
from steersman.api.preconditions import existing, referred
from steersman.api.rules.data_rules import ACCOUNT_NAME, ACCOUNT_UID
from steersman.api.times import time_text
from steersman.api.writer import by_of
from steersman.kernel.effect import MICRO, Call, Outcome, Reply, Request
from steersman.kernel.fieldset import FieldSet, node
from steersman.kernel.object import Key, Manager
from steersman.kernel.store import Store
from steersman.kernel.value import EMPTY

ISSUER: Final = "https://kubernetes.default.svc.cluster.local"
"""Who issues tokens, and whom they are for unless another audience is asked for (kubeadm's default for both)."""
LEGACY_ISSUER: Final = "kubernetes/serviceaccount"
GROUP: Final = "authentication.k8s.io"
TOKEN_REQUEST: Final = "io.k8s.api.authentication.v1.TokenRequest"
DEFAULT_SECONDS: Final = 3600
MIN_SECONDS: Final = 600
MAX_SECONDS: Final = 1 << 32
WARN_SECONDS: Final = 3607
"""What kubelets ask for in a pod's default volume: such a token lasts a year, and only its use is frowned upon after
this time (service-account-extend-token-expiration, on by default)."""
EXTENDED_SECONDS: Final = 365 * 24 * 3600
NOBODYS: Final = frozenset(
    {"name", "namespace", "creationTimestamp", "selfLink", "uid", "generation", "managedFields", "resourceVersion"}
)
"""Metadata that managedFields never tell of (apimachinery pkg/util/managedfields/internal/stripmeta.go)."""
ACCOUNT: Final = ("", "ServiceAccount")
SECRET: Final = ("", "Secret")


class _Bound(NamedTuple):
    """What a token is bound to: it ends with it."""

    claims: dict[str, Any]
    is_pod: bool = False


def request_token(machine: Machine, store: Store, request: Request, kind: Kind) -> Outcome:
    """POST serviceaccounts/NAME/token. Raises `ApiError` 400, 403, 404, 409, 422."""
    given = _given(request)
    warnings = tuple(given.pop("warnings"))
    attempt = Attempt(store, request, kind, request.key, CREATE, None, given, warnings)
    return machine.admitted(attempt, lambda after: _issued(after, dict(after.body or EMPTY)))


def _issued(attempt: Attempt, given: dict[str, Any]) -> Outcome:
    """The token that an admitted request asks for."""
    store, request, kind = attempt.store, attempt.request, attempt.kind
    namespace, name = request.key.namespace, request.key.name
    account = existing(store, request.key, kind)
    meta: dict[str, Any] = dict(given["metadata"])
    if meta.get("uid", account.uid) != account.uid:
        mine = f"the UID of the service account ({account.uid})"
        detail = f"the UID in the token request ({meta['uid']}) does not match {mine}"
        raise errors.conflict("TokenRequest", name, detail, GROUP)
    now = request.now // MICRO
    meta |= {"name": name, "namespace": namespace, "uid": account.uid, "creationTimestamp": time_text(now)}
    by = by_of(request)
    spec = dict(given.get("spec") or EMPTY)
    owned = _owned({**given, "spec": {"expirationSeconds": DEFAULT_SECONDS, **spec}})
    spec["audiences"] = list(spec.get("audiences") or (ISSUER,))
    seconds = spec["expirationSeconds"] = spec.get("expirationSeconds", DEFAULT_SECONDS)
    entry = Manager(by.manager, "Update", "token", f"{GROUP}/v1", by.time, owned)
    meta["managedFields"] = [entry.to_json()]
    spec.setdefault("boundObjectRef", None)  # which is shown when there is none, too
    _check_seconds(seconds)
    bound = _bound(store, namespace, name, spec.get("boundObjectRef"))
    extended = bound.is_pod and seconds == WARN_SECONDS and spec["audiences"] == [ISSUER]
    private = {"namespace": namespace, "serviceaccount": {"name": name, "uid": account.uid}, **bound.claims}
    if extended:
        private["warnafter"] = now + seconds
    claims = {
        "aud": spec["audiences"],
        "exp": now + (EXTENDED_SECONDS if extended else seconds),
        "iat": now,
        "iss": ISSUER,
        "kubernetes.io": private,
        "nbf": now,
        "sub": account_name(namespace, name),
    }

    def signed(token: Any) -> Outcome:
        status = {"expirationTimestamp": time_text(now + seconds), "token": token}
        document = {**given, "metadata": meta, "spec": spec, "status": status}
        return Reply(201, status=document, warnings=attempt.warnings)

    def identified(jti: Any) -> Outcome:
        return sign_token({**claims, "jti": jti}, signed)

    return Call("random", ("uid", request.key), identified)


def sign_token(claims: Mapping[str, Any], then: Callable[[Any], Outcome]) -> Call:
    """Asks for the token of some claims."""
    return Call("sign", ("token", orjson.dumps(claims, option=orjson.OPT_SORT_KEYS)), then)


def fill_secret(machine: Machine, store: Store, request: Request, kind: Kind) -> Outcome:
    """What the token controller asks for: the token of a Secret made for one. The body has the certificate of the
    cluster's authority (PEM text, "" when there is none). Raises `ApiError` 404, 409.

    No route of the HTTP face leads here; what is written then is an ordinary patch, by the same actor.
    """
    secret = existing(store, request.key, kind)
    annotations = secret.meta.value.get("annotations") or EMPTY
    name = annotations.get(ACCOUNT_NAME) or ""
    account = referred(store, Key(*ACCOUNT, request.key.namespace, name), "serviceaccounts")
    if annotations.get(ACCOUNT_UID, account.uid) != account.uid:
        raise errors.conflict("secrets", request.key.name, "its service account is another one by now")
    data = secret.value.get("data") or EMPTY
    wanted: dict[str, Any] = {}
    authority = base64.b64encode(str(request.body or "").encode()).decode()
    if authority and data.get("ca.crt") != authority:
        wanted["ca.crt"] = authority
    if not data.get("namespace"):
        wanted["namespace"] = base64.b64encode(request.key.namespace.encode()).decode()

    def patched(token: Any) -> Outcome:
        if token:
            wanted["token"] = base64.b64encode(str(token).encode()).decode()
        meta = {"annotations": {ACCOUNT_NAME: name, ACCOUNT_UID: account.uid}}
        options = {"patch": "merge", "rv": str(secret.rv), "uid": secret.uid}
        body = {"metadata": meta, "data": wanted}
        return machine.begin(store, request._replace(verb="patch", subresource="", body=body, options=options))

    if data.get("token"):
        return patched(None)
    prefix = "kubernetes.io/serviceaccount/"
    claims = {
        "iss": LEGACY_ISSUER,
        f"{prefix}namespace": request.key.namespace,
        f"{prefix}secret.name": request.key.name,
        f"{prefix}service-account.name": name,
        f"{prefix}service-account.uid": account.uid,
        "sub": account_name(request.key.namespace, name),
    }
    return sign_token(claims, patched)


def _given(request: Request) -> dict[str, Any]:
    """The TokenRequest in the body, checked, with the warnings about it. Raises `ApiError` 400, 422."""
    warnings: list[str] = []
    named = review.Named("TokenRequest", GROUP, "v1", Kinds.definition(TOKEN_REQUEST))
    given = review.take(named, request.body, request.options.get("validation") or "Warn", warnings)
    for field, wanted in (("name", request.key.name), ("namespace", request.key.namespace)):
        if given["metadata"].get(field, wanted) != wanted:
            detail = f"must match the service account {field} if specified"
            cause = Cause.invalid(f"metadata.{field}", given["metadata"][field], detail)
            raise errors.invalid("TokenRequest", request.key.name, [cause], GROUP)
    return {**given, "warnings": warnings}


def _owned(given: Mapping[str, Any]) -> FieldSet:
    """The fields of a TokenRequest that whoever sent it is on record for: all but what identifies an object."""
    meta = {name: value for name, value in given["metadata"].items() if name not in NOBODYS}
    parts = {"metadata": meta, "spec": given["spec"], "status": given.get("status") or EMPTY}
    schema = Kinds.definition(TOKEN_REQUEST)
    owned = {f"f:{part}": fields.appearing(schema, part, value) for part, value in parts.items() if value}
    return node({name: below for name, below in owned.items() if below})


def _check_seconds(seconds: int) -> None:
    detail = ""
    if seconds < MIN_SECONDS:
        detail = "may not specify a duration less than 10 minutes"
    elif seconds > MAX_SECONDS:
        detail = "may not specify a duration larger than 2^32 seconds"
    if detail:
        raise errors.invalid("TokenRequest", "", [Cause.invalid("spec.expirationSeconds", seconds, detail)], GROUP)


def _bound(store: Store, namespace: str, account: str, ref: Mapping[str, Any] | None) -> _Bound:
    """The object a token is to be bound to. Raises `ApiError` 400, 404, 409."""
    if ref is None:
        return _Bound({})
    kind, name = ref.get("kind") or "", ref.get("name") or ""
    group = (ref.get("apiVersion") or "").rpartition("/")[0]
    if group or kind not in ("Pod", "Secret", "Node"):
        version = (ref.get("apiVersion") or "").rpartition("/")[2]
        raise errors.bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
    found = referred(store, Key("", kind, "" if kind == "Node" else namespace, name), f"{kind.lower()}s")
    claims: dict[str, Any] = {kind.lower(): {"name": name, "uid": found.uid}}
    if kind == "Pod":
        runs_as = (found.spec_value or EMPTY).get("serviceAccountName") or ""
        if runs_as != account:
            raise errors.bad_request(
                f"cannot bind token for serviceaccount {errors.quote(account)} to pod running with different "
                "serviceaccount name."
            )
        if found.node:
            node = store.get(Key("", "Node", "", found.node))
            claims["node"] = {"name": found.node, **({"uid": node.uid} if node is not None else {})}
    if ref.get("uid") and ref["uid"] != found.uid:
        detail = f"the UID in the bound object reference ({ref['uid']}) does not match the UID in record. "
        raise errors.conflict(kind, name, detail + "The object might have been deleted and then recreated")
    return _Bound(claims, kind == "Pod")
