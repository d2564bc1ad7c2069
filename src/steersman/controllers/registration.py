"""An APIService for every group version of custom kinds, as long as a definition serves it.

Source of the facts: Kubernetes 1.36, pkg/controlplane/controller/crdregistration and kube-aggregator
pkg/controllers/autoregister.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, ClassVar, Final

from steersman.api.client import Client
from steersman.api.controller import Controller, Find
from steersman.api.errors import AlreadyExists, Conflict, NotFound
from steersman.api.rules.registration_rules import ALWAYS, API_VERSION, CUSTOM_PRIORITY, GROUP, MANAGED, local
from steersman.controllers.expectations import LOOK_AGAIN
from steersman.kernel.effect import Event
from steersman.kernel.object import Key, Object
from steersman.kernel.value import EMPTY

DEFINITION: Final = "apiextensions.k8s.io/v1/CustomResourceDefinition"


class ApiServiceRegistration(Controller):
    """Keeps them; one that somebody made for the same group version stays as it is."""

    name = "apiservice-registration"
    kind = f"{API_VERSION}/APIService"
    watches: ClassVar[Mapping[str, Any]] = {DEFINITION: lambda crd: ()}

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """An APIService wakes itself, a definition those of its versions, former ones included."""
        if event.key.kind == "APIService":
            return (event.key,)
        return sorted({key for obj in (event.old, event.new) if obj is not None for key in _keys(obj)})

    def reconcile(self, c: Client, key: Key) -> float | None:
        """Makes, restores or removes one. What it made is looked at again: no news may come of what is gone before it
        was seen."""
        version, _, group = key.name.partition(".")
        found = c.get(key)
        labels = {} if found is None else found["metadata"].get("labels") or {}
        if found is not None and labels.get(MANAGED) != ALWAYS:
            return None
        wanted = None
        for crd in c.list(DEFINITION):
            spec = crd["spec"]
            if spec["group"] == group and "deletionTimestamp" not in crd["metadata"]:
                served = any(each["name"] == version and each["served"] for each in spec["versions"])
                wanted = local(group, version, CUSTOM_PRIORITY, ALWAYS) if served else wanted
        with suppress(AlreadyExists, NotFound, Conflict):  # its next event comes here again
            if wanted is None:
                if found is not None:
                    c.delete(key)
            elif found is None:
                c.create(wanted)
            elif found["spec"] != wanted["spec"]:
                c.patch(found, {"spec": {**dict.fromkeys(found["spec"]), **wanted["spec"]}})
        return LOOK_AGAIN if found is None and wanted is not None else None


def _keys(crd: Object) -> Iterable[Key]:
    spec = crd.spec_value or EMPTY
    return [Key(GROUP, "APIService", "", f"{each['name']}.{spec['group']}") for each in spec.get("versions") or ()]
