"""CertificateSigningRequests: nodes' are approved by themselves, approved ones signed by the cluster's authority, and
old ones go.

Source of the facts: Kubernetes 1.36, pkg/controller/certificates (approver, signer, cleaner).
"""

from __future__ import annotations

from typing import Any, Final

from steersman.api.access.certificates import due, ends_at, undecided
from steersman.api.client import Client
from steersman.api.controller import Controller
from steersman.api.errors import Conflict, NotFound
from steersman.kernel.object import Key
from steersman.kernel.value import EMPTY

HOUR: Final = 3600.0
LASTS: Final = {"Approved": HOUR, "Denied": HOUR, "Failed": HOUR}
"""Seconds that a request stays once it is issued, denied or failed."""
ASKED_AGAIN: Final = 30.0
"""Seconds after which a request is looked at again whose maker had no right to it: rights may have come."""
PENDING: Final = 24 * HOUR
"""And while nobody decides, or nobody signs."""


class CertificateApproving(Controller):
    """Has nodes' requests for client certificates approved, where those who made them may have them."""

    name = "certificatesigningrequest-approving-controller"
    kind = "certificates.k8s.io/v1/CertificateSigningRequest"

    def reconcile(self, c: Client, key: Key) -> float | None:
        request = c.get(key)
        if request is None or not undecided(request["spec"], request.get("status") or EMPTY):
            return None
        try:
            found = c.create_part(request, "autoapproval", None)
        except (Conflict, NotFound):  # it changed, and wakes us again
            return None
        left = undecided(found["spec"], found.get("status") or EMPTY)
        return ASKED_AGAIN if left else None


class CertificateSigning(Controller):
    """Has approved requests signed. What is asked for is judged, and signed, by the request machine."""

    name = "certificatesigningrequest-signing-controller"
    kind = "certificates.k8s.io/v1/CertificateSigningRequest"

    def reconcile(self, c: Client, key: Key) -> float | None:
        request = c.get(key)
        if request is None or not due(request["spec"], request.get("status") or EMPTY):
            return None
        try:
            c.create_part(request, "certificate", None)
        except (Conflict, NotFound):  # it changed, and wakes us again
            return None
        return None


class CertificateCleaner(Controller):
    """Deletes requests that nobody needs any more."""

    name = "certificatesigningrequest-cleaner-controller"
    kind = "certificates.k8s.io/v1/CertificateSigningRequest"

    def reconcile(self, c: Client, key: Key) -> float | None:
        request = c.get(key)
        if request is not None and "deletionTimestamp" not in request["metadata"] and _is_over(c, request):
            c.delete(request, uid=request["metadata"]["uid"])
        return None


def _is_over(c: Client, request: Any) -> bool:
    status = request.get("status") or EMPTY
    conditions = status.get("conditions") or ()
    if not conditions:
        return c.after(request["metadata"]["creationTimestamp"], PENDING)
    issued = status.get("certificate")
    end = ends_at(issued) if issued else None
    if end is not None and c.after(end, 0):
        return True
    for condition in conditions:
        lasts = LASTS.get(condition["type"])
        if lasts is None or not condition.get("lastUpdateTime"):
            continue
        if condition["type"] == "Approved" and not issued:
            lasts = PENDING
        if c.after(condition["lastUpdateTime"], lasts):
            return True
    return False
