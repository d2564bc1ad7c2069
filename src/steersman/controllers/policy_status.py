"""Warnings in the status of a ValidatingAdmissionPolicy about expressions that do not fit the kinds it is about.

Source of the facts: Kubernetes 1.36, pkg/controller/validatingadmissionpolicystatus.
"""

from __future__ import annotations

from steersman.api.admission.type_check import warnings
from steersman.api.client import Client
from steersman.api.controller import Controller
from steersman.kernel.object import Key
from steersman.kernel.value import EMPTY


class PolicyStatus(Controller):
    """Type checks each generation of a policy once."""

    name = "validatingadmissionpolicy-status"
    kind = "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy"

    def reconcile(self, c: Client, key: Key) -> None:
        policy = c.get(key)
        if policy is None:
            return
        generation = policy["metadata"].get("generation", 0)
        if generation <= (policy.get("status") or EMPTY).get("observedGeneration", 0):
            return
        found = warnings(policy, c.kinds())
        checked = {"expressionWarnings": found} if found else {}
        body = {
            "apiVersion": policy["apiVersion"],
            "kind": policy["kind"],
            "metadata": {"name": key.name},
            "status": {"observedGeneration": generation, "typeChecking": checked},
        }
        c.apply(body, force=True, subresource="status")
