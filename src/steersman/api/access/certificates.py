"""CertificateSigningRequests: who asks, what may be asked, who may approve, and what is signed.

Works on the outcome of a write, before it is committed. Whoever signs is asked by
`Call("sign", ("certificate", JSON))`: `request` (PEM), `usages`, `seconds`, `now` (seconds since the epoch). Source:
Kubernetes 1.36,
pkg/registry/certificates, pkg/apis/certificates, pkg/controller/certificates/signer and the admission plugins
CertificateApproval, CertificateSigning and CertificateSubjectRestriction.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import orjson

from steersman.api import errors
from steersman.api.access.authz import Rbac
from steersman.api.access.machine import Machine
from steersman.api.access.rbac import Ask
from steersman.api.access.user import MASTERS, NODE_PREFIX, NODES, User
from steersman.api.errors import Cause
from steersman.api.kinds import Kind
from steersman.api.names import dns1123_subdomain
from steersman.api.preconditions import existing
from steersman.api.times import time_text
from steersman.kernel.effect import MICRO, Call, Commit, Outcome, Reply, Request
from steersman.kernel.object import Object, Section
from steersman.kernel.store import Store
from steersman.kernel.value import EMPTY, freeze

if TYPE_CHECKING:
    from cryptography.x509 import CertificateSigningRequest as Asked

GROUP: Final = "certificates.k8s.io"
CSR: Final = (GROUP, "CertificateSigningRequest")
PLURAL: Final = "certificatesigningrequests"
CLIENT: Final = "kubernetes.io/kube-apiserver-client"
KUBELET_CLIENT: Final = "kubernetes.io/kube-apiserver-client-kubelet"
KUBELET_SERVING: Final = "kubernetes.io/kubelet-serving"
LEGACY: Final = "kubernetes.io/legacy-unknown"
SIGNED: Final = frozenset({CLIENT, KUBELET_CLIENT, KUBELET_SERVING})
"""Signers that the cluster's own authority stands behind."""
LIFETIME: Final = 365 * 24 * 3600
"""Seconds: the most a certificate lasts (cluster-signing-duration's default)."""
MIN_LIFETIME: Final = 600
MAX_SIGNER: Final = 571
DECIDED: Final = ("Approved", "Denied")
FINAL: Final = ("Approved", "Denied", "Failed")
APPROVALS: Final = {
    "selfnodeclient": "Auto approving self kubelet client certificate after SubjectAccessReview.",
    "nodeclient": "Auto approving kubelet client certificate after SubjectAccessReview.",
}
"""What somebody must be allowed to create for their request to be approved, and how that is told."""
ASKER: Final = ("username", "uid", "groups", "extra")
USAGES: Final = (
    "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment",
    "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel",
    "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime",
    "server auth", "signing", "timestamping",
)  # fmt: skip


class Unfit(ValueError):
    """A request for a certificate that cannot be read, or that its signer does not sign."""


# -- the object as it is written -------------------------------------------------------------------------------


def guarded(rbac: Rbac, store: Store, request: Request, outcome: Outcome) -> Outcome:
    """The outcome of a write to a signing request, completed and judged before it can be committed. Raises `ApiError`
    403, 422."""
    if request.verb in ("get", "list", "delete") or request.subresource in ("autoapproval", "certificate"):
        return outcome  # `approve` and `sign` make patches, which are judged by themselves
    if isinstance(outcome, Call):

        def resumed(answer: Any) -> Outcome:
            return guarded(rbac, store, request, outcome.resume(answer))

        return Call(outcome.kind, outcome.question, resumed)
    old = outcome.old if isinstance(outcome, Commit) else None if outcome.obj is None else store.get(outcome.obj.key)
    new = outcome.new if isinstance(outcome, Commit) else outcome.obj
    if new is None or new is old:
        return outcome
    user = request.options.get("user")
    new = _born(new, user) if old is None else _kept(old, new, request)
    causes = _causes(old, new, request.subresource)
    if causes:
        raise errors.invalid(CSR[1], new.key.name, causes, GROUP)
    if isinstance(user, User):
        _authorize(rbac, store, user, request, old, new)
    if isinstance(outcome, Reply):
        return outcome._replace(obj=new)
    if old is not None and new.same_content(old):  # it asked for what may not change, and for nothing else
        return Reply(200, obj=old, warnings=outcome.warnings)
    return outcome._replace(new=new)


def _born(new: Object, user: Any) -> Object:
    """Who asks is who is authenticated; nothing is decided yet."""
    spec = {name: value for name, value in new.spec_value.items() if name not in ASKER}
    if isinstance(user, User):
        spec |= {name: value for name, value in user.json().items() if name in ASKER}
    return new.replace(spec=Section(freeze(spec)), status=Section(EMPTY))


def _kept(old: Object, new: Object, request: Request) -> Object:
    """What a write of this part may not change stays; conditions get their times."""
    if request.subresource not in ("status", "approval"):
        return new.replace(spec=old.spec, status=old.status)
    before, after = old.status_value or EMPTY, new.status_value or EMPTY
    given = list(after.get("conditions") or ())
    if request.subresource == "status":
        for kind in DECIDED:
            was, places = _of(before, kind), [at for at, one in enumerate(given) if one.get("type") == kind]
            if len(was) == len(places):
                for at, condition in zip(places, was, strict=True):
                    given[at] = condition
    now = time_text(request.now // MICRO)
    conditions = [_timed(condition, before, now) for condition in given]
    kept = {name: value for name, value in before.items() if name != "conditions"}
    status = kept if request.subresource == "approval" else {k: v for k, v in after.items() if k != "conditions"}
    if conditions:
        status = {**status, "conditions": conditions}
    return new.replace(spec=old.spec, status=Section(freeze(status)))


def _timed(condition: Mapping[str, Any], before: Mapping[str, Any], now: str) -> dict[str, Any]:
    out = {"lastUpdateTime": now, **condition}
    if not out.get("lastTransitionTime"):
        same = [one for one in _of(before, out.get("type")) if one.get("status") == out.get("status")]
        times = [one["lastTransitionTime"] for one in same if "lastTransitionTime" in one]
        out["lastTransitionTime"] = times[0] if times else now
    return out


def _of(status: Mapping[str, Any], kind: Any) -> list[Mapping[str, Any]]:
    return [one for one in status.get("conditions") or () if one.get("type") == kind]


# -- what is judged --------------------------------------------------------------------------------------------


def _causes(old: Object | None, new: Object, part: str) -> list[Cause]:
    causes = spec_causes(new.spec_value) if old is None else []
    status, before = new.status_value or EMPTY, EMPTY if old is None else old.status_value or EMPTY
    causes += _condition_causes(status.get("conditions") or ())
    where = "status.conditions"
    for kind in FINAL:
        if len(_of(status, kind)) < len(_of(before, kind)):
            causes.append(Cause.forbidden(where, f'updates may not remove a condition of type "{kind}"'))
        elif part != "approval" and kind in DECIDED and len(_of(status, kind)) > len(_of(before, kind)):
            causes.append(Cause.forbidden(where, f'updates may not add a condition of type "{kind}"'))
    if status.get("certificate") != before.get("certificate") and old is not None:
        if part != "status":
            causes.append(Cause.forbidden("status.certificate", "updates may not set certificate content"))
        elif before.get("certificate"):
            causes.append(Cause.forbidden("status.certificate", "updates may not modify existing certificate content"))
        elif problem := _chain_problem(status.get("certificate") or ""):
            causes.append(Cause.invalid("status.certificate", "<certificate data>", problem))
    return causes


def spec_causes(spec: Mapping[str, Any]) -> list[Cause]:
    """What is wrong with what a new request asks for."""
    causes = []
    try:
        parse(spec.get("request") or "")
    except Unfit as problem:
        causes.append(Cause.invalid("spec.request", spec.get("request") or None, str(problem)))
    usages = spec.get("usages") or ()
    if not usages:
        causes.append(Cause.required("spec.usages"))
    for at, usage in enumerate(usages):
        if usage not in USAGES:
            causes.append(Cause.unsupported(f"spec.usages[{at}]", usage, USAGES))
        if usage in usages[:at]:
            causes.append(Cause.duplicate(f"spec.usages[{at}]", usage))
    signer = spec.get("signerName") or ""
    if signer == LEGACY:
        detail = "the legacy signerName is not allowed via this API version"
        causes.append(Cause.invalid("spec.signerName", signer, detail))
    else:
        causes += _signer_causes(signer)
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < MIN_LIFETIME:
        detail = "may not specify a duration less than 600 seconds (10 minutes)"
        causes.append(Cause.invalid("spec.expirationSeconds", seconds, detail))
    return causes


def _signer_causes(signer: str) -> list[Cause]:
    """`example.com/name`: a domain of two parts or more, and a path that is a name."""
    field = "spec.signerName"
    if not signer:
        return [Cause.required(field)]
    domain, slash, path = signer.partition("/")
    if not slash or "/" in path:
        detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        return [Cause.invalid(field, signer, detail)]
    causes = []
    for problem in dns1123_subdomain(domain):
        causes.append(Cause.invalid(field, domain, f"validating domain {errors.quote(domain)}: {problem}"))
    if "." not in domain:
        causes.append(Cause.invalid(field, domain, "should be a domain with at least two segments separated by dots"))
    for problem in dns1123_subdomain(path):
        causes.append(Cause.invalid(field, path, f"validating path {errors.quote(path)}: {problem}"))
    if len(signer) > MAX_SIGNER:
        causes.append(Cause.too_long(field, MAX_SIGNER))
    return causes


def _condition_causes(conditions: Iterable[Mapping[str, Any]]) -> list[Cause]:
    causes, seen = [], list[str]()
    for at, condition in enumerate(conditions):
        field, kind, value = f"status.conditions[{at}]", condition.get("type") or "", condition.get("status") or ""
        allowed = ("True",) if kind in FINAL else ("False", "True", "Unknown")
        if not kind:
            causes.append(Cause.required(f"{field}.type"))
        if not value:
            causes.append(Cause.required(f"{field}.status"))
        elif value not in allowed:
            causes.append(Cause.unsupported(f"{field}.status", value, allowed))
        if kind in DECIDED and any(other in seen for other in DECIDED if other != kind):
            detail = "Approved and Denied conditions are mutually exclusive"
            causes.append(Cause.invalid("status.conditions", kind, detail))
        if kind in seen:
            causes.append(Cause.duplicate(f"{field}.type", kind))
        seen.append(kind)
    return causes


def _authorize(rbac: Rbac, store: Store, user: User, request: Request, old: Object | None, new: Object) -> None:
    """Raises 403 unless a user may do this to a request for this signer."""
    signer = new.spec_value.get("signerName") or ""
    if old is None:
        if signer == CLIENT and MASTERS in _organizations(parse(new.spec_value["request"])):
            raise _forbidden(new, f"use of {CLIENT} signer with {MASTERS} group is not allowed")
        return
    verb = {"approval": "approve", "status": "sign"}.get(request.subresource, "")
    before, after = old.status_value or EMPTY, new.status_value or EMPTY
    parts = ("certificate", "conditions")
    if not verb or (verb == "sign" and all(before.get(part) == after.get(part) for part in parts)):
        return
    names = (signer, f"{signer.partition('/')[0]}/*")
    if not any(rbac.decide(store, user, Ask(verb, GROUP, "signers", name=name)).allowed for name in names):
        raise _forbidden(new, f"user not permitted to {verb} requests with signerName {errors.quote(signer)}")


def _forbidden(obj: Object, detail: str) -> errors.ApiError:
    return errors.forbidden(PLURAL, obj.key.name, detail, GROUP)


# -- signing ---------------------------------------------------------------------------------------------------


def sign(machine: Machine, store: Store, request: Request, kind: Kind) -> Outcome:
    """What the signing controller asks for: the certificate of an approved request, or the condition Failed.

    No route of the HTTP face leads here; what is written then is an ordinary patch of the status, by the same actor.
    """
    found = existing(store, request.key, kind)
    spec, status = found.spec_value, found.status_value or EMPTY
    if not due(spec, status):
        return Reply(200, obj=found)

    def patched(change: Mapping[str, Any]) -> Outcome:
        options = {"patch": "merge", "rv": str(found.rv)}
        body = {"status": change}
        return machine.begin(store, request._replace(verb="patch", subresource="status", body=body, options=options))

    try:
        _check_fit(parse(spec["request"]), spec)
    except Unfit as problem:
        failed = {"type": "Failed", "status": "True", "reason": "SignerValidationFailure", "message": str(problem)}
        return patched({"conditions": [*(status.get("conditions") or ()), failed]})
    seconds = min(max(spec.get("expirationSeconds") or LIFETIME, MIN_LIFETIME), LIFETIME)
    wanted = {
        "now": request.now // MICRO,
        "request": base64.b64decode(spec["request"]).decode("ascii", "replace"),
        "seconds": seconds,
        "usages": list(spec["usages"]),
    }
    question = ("certificate", orjson.dumps(wanted, option=orjson.OPT_SORT_KEYS))
    return Call("sign", question, lambda pem: patched({"certificate": base64.b64encode(pem.encode()).decode()}))


def approve(machine: Machine, store: Store, request: Request, kind: Kind) -> Outcome:
    """What the approving controller asks for: the condition Approved of a node's request for a client certificate, if
    whoever made it may have it approved. The answer is the object as it is when nobody may.

    No route of the HTTP face leads here; what is written then is an ordinary patch of `approval`, by the same actor.
    Source: Kubernetes 1.36, pkg/controller/certificates/approver.
    """
    found = existing(store, request.key, kind)
    spec, status = found.spec_value, found.status_value or EMPTY
    if not undecided(spec, status):
        return Reply(200, obj=found)
    asked = parse(spec["request"])
    try:
        _check_fit(asked, spec)
    except Unfit:
        return Reply(200, obj=found)
    user = User.of(spec, "username")
    for part, message in APPROVALS.items():
        if part == "selfnodeclient" and user.name != common_name(asked):
            continue
        if machine.rbac.decide(store, user, Ask("create", GROUP, PLURAL, part)).allowed:
            approved = {"type": "Approved", "status": "True", "reason": "AutoApproved", "message": message}
            body = {"status": {"conditions": [*(status.get("conditions") or ()), approved]}}
            options = {"patch": "merge", "rv": str(found.rv)}
            change = request._replace(verb="patch", subresource="approval", body=body, options=options)
            return machine.begin(store, change)
    return Reply(200, obj=found)


def undecided(spec: Mapping[str, Any], status: Mapping[str, Any]) -> bool:
    """Whether it is a node's request for a client certificate that nobody has decided."""
    decided = any(one.get("type") in DECIDED for one in status.get("conditions") or ())
    return spec.get("signerName") == KUBELET_CLIENT and not decided and not status.get("certificate")


def due(spec: Mapping[str, Any], status: Mapping[str, Any]) -> bool:
    """Whether the cluster's authority has to sign this request now."""
    decided = {kind: any(one.get("status") == "True" for one in _of(status, kind)) for kind in FINAL}
    waits = decided["Approved"] and not decided["Denied"] and not decided["Failed"]
    return waits and not status.get("certificate") and spec.get("signerName") in SIGNED


def parse(text: str) -> Asked:
    """The certification request in the base64 text of spec.request, its signature checked. Raises Unfit."""
    from cryptography import x509  # slow to load, and most processes see no such request
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

    try:
        data = base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        data = b""
    if b"-----BEGIN CERTIFICATE REQUEST-----" not in data:
        raise Unfit("PEM block type must be CERTIFICATE REQUEST")
    try:
        found = x509.load_pem_x509_csr(data)
        valid = found.is_signature_valid
    except (ValueError, TypeError, UnsupportedAlgorithm, InvalidSignature) as error:
        raise Unfit(f"cannot be read: {error}") from None
    if not valid:
        raise Unfit("its signature does not fit its key")
    return found


def _check_fit(asked: Asked, spec: Mapping[str, Any]) -> None:
    """Raises Unfit unless a signer of the cluster signs such a request."""
    usages = sorted(spec["usages"])
    signer = spec["signerName"]
    if signer == CLIENT:
        for usage in usages:
            if usage not in ("digital signature", "key encipherment", "client auth"):
                raise Unfit(f"invalid usage for client certificate: {usage}")
        if "client auth" not in usages:
            raise Unfit("missing required usage for client certificate: client auth")
        return
    purpose = "client auth" if signer == KUBELET_CLIENT else "server auth"
    if _organizations(asked) != [NODES]:
        raise Unfit(f"subject organization is not {NODES}")
    _check_names(_alternatives(asked), signer)
    required = sorted(["digital signature", "key encipherment", purpose])
    if usages not in (required, sorted(["digital signature", purpose])):
        raise Unfit(f"usages did not match [{' '.join(required)}]")
    if not common_name(asked).startswith(NODE_PREFIX):
        raise Unfit(f"subject common name does not begin with {NODE_PREFIX}")


def _check_names(names: Mapping[str, int], signer: str) -> None:
    if signer == KUBELET_SERVING:
        if not names["DNS"] and not names["IP"]:
            raise Unfit("DNS or IP subjectAltName is required")
        refused = ["email", "URI"]
    else:
        refused = ["DNS", "email", "IP", "URI"]
    for kind in refused:
        if names[kind]:
            raise Unfit(f"{kind} subjectAltNames are not allowed")


def _organizations(asked: Asked) -> list[str]:
    from cryptography.x509.oid import NameOID

    return [str(name.value) for name in asked.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]


def common_name(asked: Asked) -> str:
    """The one common name of the subject; "" when there is none, or several."""
    from cryptography.x509.oid import NameOID

    found = asked.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(found[0].value) if len(found) == 1 else ""


def _alternatives(asked: Asked) -> dict[str, int]:
    """How many alternative names of each kind are asked for. Raises Unfit."""
    from cryptography import x509

    try:
        names = list(asked.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        names = []
    except ValueError as error:
        raise Unfit(f"its extensions cannot be read: {error}") from None
    kinds = {"DNS": x509.DNSName, "email": x509.RFC822Name, "IP": x509.IPAddress, "URI": x509.UniformResourceIdentifier}
    return {kind: sum(isinstance(name, cls) for name in names) for kind, cls in kinds.items()}


def _chain_problem(text: str) -> str:
    """What is wrong with status.certificate (base64 of PEM); "" when nothing is."""
    from cryptography import x509

    try:
        data = base64.b64decode(text, validate=True)
        if data and not x509.load_pem_x509_certificates(data):
            return "must contain at least one CERTIFICATE PEM block"
    except (ValueError, binascii.Error) as error:
        return f"must contain at least one CERTIFICATE PEM block: {error}"
    return ""


def ends_at(text: str) -> int | None:
    """When the certificate in status.certificate ends, in microseconds; None when it cannot be read."""
    from cryptography import x509

    try:
        found = x509.load_pem_x509_certificate(base64.b64decode(text))
    except (ValueError, binascii.Error):
        return None
    return int(found.not_valid_after_utc.timestamp()) * MICRO
