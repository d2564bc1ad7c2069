"""Controllers of volumes and devices."""

from __future__ import annotations

import steersman as sm
from steersman.controllers.builtin import builtin
from steersman.kernel.object import Key
from tests.check.targets.making import named, web_pod
from tests.controllers import test_resourceclaims as devices
from tests.controllers.test_volumes import CLAIM, VOLUME, claim, pod, volume

POD = Key("", "Pod", "default", "p")
CLAIMS = "v1/PersistentVolumeClaim"


def binder() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("persistentvolume-binder"))
    w.apply(volume())
    w.apply(claim())
    w.apply(claim("other"))
    w.user("delete", lambda c: c.delete(CLAIM))

    def one_each(s: sm.State) -> bool:
        """No two claims are bound to the volume."""
        return len([each for each in s.list(CLAIMS) if (each.get("spec") or {}).get("volumeName") == "v"]) <= 1

    w.always("one claim a volume", one_each)
    return w.converges(lambda s: not s[CLAIM] and s[VOLUME].status.phase in ("Bound", "Released"))


def ephemeral() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("ephemeral-volume-controller"))
    template = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    w.apply(web_pod("p", volumes=[{"name": "d", "ephemeral": {"volumeClaimTemplate": template}}]))
    key = Key("", "PersistentVolumeClaim", "default", "p-d")
    w.user("lose", lambda c: c.delete(key))
    return w.converges(lambda s: bool(s[key]))


def claim_protection() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("persistentvolumeclaim-protection-controller"))
    w.apply(claim())
    kept = w.apply(claim("kept"))
    w.apply(pod())
    w.user("delete", lambda c: c.delete(CLAIM))
    w.user("end", lambda c: c.delete(POD, grace=0))
    return w.converges(lambda s: not s[CLAIM] and s[kept].metadata.finalizers)


def volume_protection() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("persistentvolume-protection-controller"))
    w.apply(volume())
    kept = w.apply(volume("kept"))
    w.user("delete", lambda c: c.delete(VOLUME))
    return w.converges(lambda s: not s[VOLUME] and s[kept].metadata.finalizers)


def attributes() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("volumeattributesclass-protection-controller"))
    fields = {"driverName": "d", "parameters": {"a": "b"}}
    key, kept = [
        w.apply(named("storage.k8s.io/v1", "VolumeAttributesClass", name, "", **fields)) for name in ("gold", "kept")
    ]
    w.apply(claim(volumeAttributesClassName="gold"))
    w.user("delete", lambda c: c.delete(key))
    w.user("free", lambda c: c.delete(CLAIM))
    return w.converges(lambda s: not s[key] and s[kept].metadata.finalizers)


def resource_claims() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("resourceclaim-controller"))
    w.apply(devices.TEMPLATE)
    w.apply(devices.POD)
    stays = w.apply({**devices.POD, "metadata": {**devices.POD["metadata"], "name": "stays"}})
    w.user("end", lambda c: c.patch_status(devices.POD_KEY, {"phase": "Succeeded"}))

    def told(s: sm.State) -> bool:
        """The pod that goes on has its claim, and says which."""
        names = {each.resourceClaimName for each in s[stays].status.resourceClaimStatuses or ()}
        return len(names) == 1 and names <= {each.metadata.name for each in s.list(devices.CLAIM)}

    return w.converges(told)


TARGETS = {
    "persistentvolume-binder": binder,
    "ephemeral-volume-controller": ephemeral,
    "persistentvolumeclaim-protection-controller": claim_protection,
    "persistentvolume-protection-controller": volume_protection,
    "volumeattributesclass-protection-controller": attributes,
    "resourceclaim-controller": resource_claims,
}
