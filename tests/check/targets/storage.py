"""Controllers of volumes and devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import steersman as sm
from steersman.api.client import key_of
from steersman.controllers.builtin import builtin
from steersman.kernel.object import Key
from tests.check.targets.making import gone, named, web_pod
from tests.controllers import test_expansion as sizes
from tests.controllers import test_resourceclaims as devices
from tests.controllers.test_volumes import CLAIM, VOLUME, claim, pod, volume

POD = Key("", "Pod", "default", "p")
CLAIMS = "v1/PersistentVolumeClaim"
TEMPLATES = "resource.k8s.io/v1/ResourceClaimTemplate"
STORAGE = "storage.k8s.io/v1"


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

    def both_say_so(s: sm.State) -> bool:
        """A volume is bound to the claim that it names, and released when that is gone; none waits that one fits."""
        if gone(s, VOLUME):
            return True
        holder = s[VOLUME].spec.claimRef
        bound = [each for each in s.list(CLAIMS) if holder and each.metadata.uid == holder.uid]
        if not bound:
            return s[VOLUME].status.phase == ("Released" if holder else "Available") and (holder or not _wanted(s))
        return s[VOLUME].status.phase == bound[0].status.phase == "Bound" and bound[0].spec.volumeName == "v"

    return w.converges(both_say_so)


def _wanted(s: sm.State) -> bool:
    """Whether a claim waits that the volume fits."""
    offer = s[VOLUME].spec
    return any(
        not gone(s, key_of(each))
        and each.spec.accessModes == offer.accessModes
        and each.spec.storageClassName == (offer.storageClassName or "")
        and each.spec.resources.requests.storage == offer.capacity.storage
        for each in s.list(CLAIMS)
    )


def ephemeral() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("ephemeral-volume-controller"))
    template = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    w.apply(web_pod("p", volumes=[{"name": "d", "ephemeral": {"volumeClaimTemplate": template}}]))
    key = Key("", "PersistentVolumeClaim", "default", "p-d")
    w.user("lose", lambda c: c.delete(key))
    return w.converges(lambda s: gone(s, POD) or bool(s[key]))


def claim_protection() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("persistentvolumeclaim-protection-controller"))
    w.apply(claim())
    w.apply(claim("kept"))
    w.apply(pod())
    w.user("delete", lambda c: c.delete(CLAIM))
    w.user("end", lambda c: c.delete(POD, grace=0))
    return w.converges(lambda s: _protected(s, CLAIMS, lambda claim: claim.metadata.name == "c" and bool(s[POD])))


def _protected(s: sm.State, kind: str, used: Callable[[Any], bool]) -> bool:
    """All of a kind have their finalizer, and of those that are to go only the ones in use are there."""
    there = s.list(kind)
    going = [each for each in there if "deletionTimestamp" in each.metadata]
    return all(each.metadata.finalizers for each in there) and all(used(each) for each in going)


def volume_protection() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("persistentvolume-protection-controller"))
    w.apply(volume())
    w.apply(volume("kept"))
    w.user("delete", lambda c: c.delete(VOLUME))
    return w.converges(lambda s: _protected(s, "v1/PersistentVolume", lambda volume: False))


def attributes() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("volumeattributesclass-protection-controller"))
    fields = {"driverName": "d", "parameters": {"a": "b"}}
    key, _ = [w.apply(named(STORAGE, "VolumeAttributesClass", name, "", **fields)) for name in ("gold", "kept")]
    w.apply(claim(volumeAttributesClassName="gold"))
    w.user("delete", lambda c: c.delete(key))
    w.user("free", lambda c: c.delete(CLAIM))

    def protected(s: sm.State) -> bool:
        named_ = {each.spec.volumeAttributesClassName for each in s.list(CLAIMS)}
        return _protected(s, f"{STORAGE}/VolumeAttributesClass", lambda class_: class_.metadata.name in named_)

    return w.converges(protected)


def resource_claims() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("resourceclaim-controller"))
    w.apply(devices.TEMPLATE)
    w.apply(devices.POD)
    stays = w.apply({**devices.POD, "metadata": {**devices.POD["metadata"], "name": "stays"}})
    w.user("end", lambda c: c.patch_status(devices.POD_KEY, {"phase": "Succeeded"}))

    def told(s: sm.State) -> bool:
        """The pod that goes on has its claim, and says which."""
        if gone(s, stays) or s[stays].status.phase == "Failed" or not s.count(TEMPLATES):
            return True
        names = {each.resourceClaimName for each in s[stays].status.resourceClaimStatuses or ()}
        return len(names) == 1 and names <= {each.metadata.name for each in s.list(devices.CLAIM)}

    return w.converges(told)


def expansion() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("persistentvolume-expander"))
    w.apply(sizes.VOLUME)
    w.apply(sizes.CLAIM)
    w.user("bind", sizes.bind)
    w.user("grow", sizes.grow)

    def handed_over(s: sm.State) -> bool:
        """What asks for more than it has says whose driver will see to it."""
        found = s[sizes.KEY]
        grown = found.spec.resources.requests.storage != "1Gi" and found.status.phase == "Bound"
        return gone(s, sizes.KEY) or not grown or found.metadata.annotations[sizes.RESIZER] == "pd.csi.storage.gke.io"

    return w.converges(handed_over)


TARGETS = {
    "persistentvolume-binder": binder,
    "ephemeral-volume-controller": ephemeral,
    "persistentvolumeclaim-protection-controller": claim_protection,
    "persistentvolume-protection-controller": volume_protection,
    "volumeattributesclass-protection-controller": attributes,
    "resourceclaim-controller": resource_claims,
    "persistentvolume-expander": expansion,
}
