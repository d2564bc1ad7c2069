"""Aggregated ClusterRoles: their rules are those of the roles they select.

Source of the facts: Kubernetes 1.36, pkg/controller/clusterroleaggregation.
"""

from __future__ import annotations

from collections.abc import Iterable

from steersman.api.client import Client
from steersman.api.controller import Controller, Find
from steersman.api.policy import API_VERSION, aggregated
from steersman.kernel.effect import Event
from steersman.kernel.object import Key


class ClusterRoleAggregation(Controller):
    """Collects rules. Any role may be part of any other, so an event of one wakes all that aggregate."""

    name = "clusterrole-aggregation-controller"
    kind = "rbac.authorization.k8s.io/v1/ClusterRole"

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """One key for all of them: which there are is read when it is reconciled."""
        return (Key(event.key.group, event.key.kind, "", ""),)

    def reconcile(self, c: Client, key: Key) -> float | None:
        roles = c.list(self.kind)
        for role in roles:
            if not (role.get("aggregationRule") or {}).get("clusterRoleSelectors"):
                continue
            rules = aggregated(role, roles)
            if rules != list(role.get("rules") or ()):
                meta = {"name": role["metadata"]["name"]}
                c.apply({"apiVersion": API_VERSION, "kind": key.kind, "metadata": meta, "rules": rules}, force=True)
        return None
