"""The binder of claims and volumes, and the provisioner of virtual ones.

Source of the facts: Kubernetes 1.36, pkg/controller/volume/persistentvolume and component-helpers storage/volume. What
differs: a claim of a class that waits for its first consumer is given the node of the first pod that was placed with
it, for the scheduler here does not weigh volumes; and claims of classes of the provisioner `steersman.dev/virtual`
are provisioned here: a volume that holds nothing, on whatever node. Those of other provisioners are theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

from steersman.api.client import Client
from steersman.api.controller import Controller, Find
from steersman.api.quantity import parse
from steersman.api.references import claims_of
from steersman.api.select import LabelSelector
from steersman.controllers import volume_deletion
from steersman.controllers.owned import is_terminating
from steersman.controllers.protection import CLAIM, POD, VOLUME
from steersman.controllers.volume_deletion import PROVISIONED_BY, VIRTUAL
from steersman.kernel.effect import Event
from steersman.kernel.object import Key
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
SOURCE: Final = "persistentvolume-controller"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
PROVISIONERS: Final = ("volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/storage-provisioner")
CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
DEFAULT_MARKS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
PENDING: Final = Key(*CLAIM, "", "pending")
"""Stands for every claim that is not bound, and every volume that is: no claim is without a namespace."""
NOTHING: Final = "no persistent volumes available for this claim and no storage class is set"
WAITS: Final = "waiting for first consumer to be created before binding"


class VolumeBinder(Controller):
    """Binds PersistentVolumeClaims to PersistentVolumes."""

    name = "persistentvolume-binder"
    kind = "v1/PersistentVolumeClaim"
    watches: ClassVar[Mapping[str, Any]] = {
        "v1/PersistentVolume": lambda volume: (),
        "storage.k8s.io/v1/StorageClass": lambda class_: (),
        "v1/Pod": lambda pod: (),
    }

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """Claims and volumes wake themselves and each other; a free volume and a class every waiting claim; a pod
        that got its node, the claims it mounts."""
        gk, old, new = event.key.gk, event.old, event.new
        if gk == POD:
            placed = new is not None and bool(new.node) and (old is None or not old.node)
            return [Key(*CLAIM, event.key.namespace, name) for name in claims_of(new.value)] if placed else ()  # type: ignore[union-attr]
        if gk not in (CLAIM, VOLUME):
            return (PENDING,)
        woken: dict[Key, None] = {event.key: None}
        for obj in (old, new):
            spec = EMPTY if obj is None else obj.spec_value or EMPTY
            if gk == CLAIM and spec.get("volumeName"):
                woken[Key(*VOLUME, "", spec["volumeName"])] = None
            elif gk == VOLUME and spec.get("claimRef"):
                ref = spec["claimRef"]
                woken[Key(*CLAIM, ref.get("namespace", ""), ref.get("name", ""))] = None
            elif gk == VOLUME and obj is new:
                woken[PENDING] = None
        if gk == CLAIM and new is None and len(woken) == 1:  # half bound, maybe: the volume knows of it, it did not
            woken[PENDING] = None
        return woken

    def reconcile(self, c: Client, key: Key) -> None:
        """Takes one claim or volume as far as it goes now. Raises `Conflict` where one of them changed meanwhile."""
        if key == PENDING:
            for claim in c.list("v1/PersistentVolumeClaim"):
                if COMPLETED not in _notes(claim):
                    _claim(c, claim)
            for volume in c.list("v1/PersistentVolume"):
                if volume["spec"].get("claimRef") and (volume.get("status") or EMPTY).get("phase") == "Bound":
                    _volume(c, volume)
            return
        obj = c.get(key)
        if obj is not None:
            (_claim if key.gk == CLAIM else _volume)(c, obj)


# -- claims ----------------------------------------------------------------------------------------------------------


def _claim(c: Client, claim: Json) -> None:
    wanted = claim["spec"].get("volumeName")
    volume = None if not wanted else c.get(Key(*VOLUME, "", wanted), fresh=True)
    if COMPLETED not in _notes(claim):
        _unbound(c, claim, wanted, volume)
        return
    ref = EMPTY if volume is None else volume["spec"].get("claimRef") or EMPTY
    if not wanted:
        _lost(c, claim, "ClaimLost", "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!")
    elif volume is None:
        _lost(c, claim, "ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!")
    elif ref and ref.get("uid") != claim["metadata"]["uid"]:
        text = "Two claims are bound to the same volume, this one is bound incorrectly"
        _lost(c, claim, "ClaimMisbound", text)
    else:
        _bind(c, claim, volume)


def _unbound(c: Client, claim: Json, wanted: str | None, volume: Json | None) -> None:
    if not wanted:
        _find(c, claim)
    elif volume is None:
        _claim_status(c, claim, {"phase": "Pending"})
    elif not volume["spec"].get("claimRef"):
        fault = _mismatch(claim, volume)
        if fault:
            text = f'Cannot bind to requested volume "{wanted}": {fault}'
            c.event(claim, "Warning", "VolumeMismatch", text, SOURCE)
            _claim_status(c, claim, {"phase": "Pending"})
        else:
            _bind(c, claim, volume)
    elif _is_for(volume, claim):
        _bind(c, claim, volume)
    else:
        c.event(claim, "Warning", "FailedBinding", f'volume "{wanted}" already bound to a different claim.', SOURCE)
        _claim_status(c, claim, {"phase": "Pending"})


def _find(c: Client, claim: Json) -> None:
    """A claim that takes any volume: the best there is, or a new one."""
    if is_terminating(claim):
        return
    name = class_of(claim)
    if not name and claim["spec"].get("storageClassName") is None and CLASS_ANNOTATION not in _notes(claim):
        default = _default_class(c)
        if default:
            c.patch(claim, {"spec": {"storageClassName": default}}, rv=claim["metadata"]["resourceVersion"])
            return
    class_ = c.get(Key("storage.k8s.io", "StorageClass", "", name)) if name else None
    node: Json | None = None
    delayed = class_ is not None and class_.get("volumeBindingMode") == "WaitForFirstConsumer"
    if delayed:
        claim, node = _consumer(c, claim)
    volume = _best(c.list("v1/PersistentVolume", fresh=True), claim, name, delayed, node)
    if volume is not None:
        _bind(c, claim, volume)
        return
    if delayed and SELECTED_NODE not in _notes(claim):
        c.event(claim, "Normal", "WaitForFirstConsumer", WAITS, SOURCE)
    elif not name:
        c.event(claim, "Normal", "FailedBinding", NOTHING, SOURCE)
    elif class_ is None:
        text = f'storageclass.storage.k8s.io "{name}" not found'
        c.event(claim, "Warning", "ProvisioningFailed", text, SOURCE)
    else:
        claim = _provision(c, claim, class_)
    _claim_status(c, claim, {"phase": "Pending"})


def _consumer(c: Client, claim: Json) -> tuple[Json, Json | None]:
    """The claim with the node of its first consumer noted on it, and that node."""
    meta = claim["metadata"]
    chosen = _notes(claim).get(SELECTED_NODE)
    if chosen is None:
        pods = c.list("v1/Pod", meta["namespace"])
        placed = [pod for pod in pods if pod["spec"].get("nodeName") and meta["name"] in claims_of(pod)]
        if not placed:
            return claim, None
        chosen = placed[0]["spec"]["nodeName"]
        claim = c.patch(
            claim, {"metadata": {"annotations": {SELECTED_NODE: chosen}}}, rv=claim["metadata"]["resourceVersion"]
        )
    return claim, c.get(Key("", "Node", "", chosen))


def _provision(c: Client, claim: Json, class_: Json) -> Json:
    """Makes a virtual volume for the claim, or says whom it waits for. The volume's event binds it."""
    provisioner = class_["provisioner"]
    if provisioner == NO_PROVISIONER:
        return claim
    if any(_notes(claim).get(name) != provisioner for name in PROVISIONERS):
        notes = dict.fromkeys(PROVISIONERS, provisioner)
        claim = c.patch(claim, {"metadata": {"annotations": notes}}, rv=claim["metadata"]["resourceVersion"])
    if provisioner != VIRTUAL:
        text = (
            f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the "
            "system administrator. If volume creation is delayed, please verify that the provisioner is running and "
            "correctly registered."
        )
        c.event(claim, "Normal", "ExternalProvisioning", text, SOURCE)
        return claim
    spec, meta = claim["spec"], claim["metadata"]
    name = f"pvc-{meta['uid']}"
    if c.get(Key(*VOLUME, "", name), fresh=True) is None:
        made: dict[str, Any] = {
            "accessModes": spec["accessModes"],
            "capacity": {"storage": _asked(claim)},
            "claimRef": _ref(claim),
            "csi": {"driver": VIRTUAL, "volumeHandle": name},
            "persistentVolumeReclaimPolicy": class_.get("reclaimPolicy") or "Delete",
            "storageClassName": class_["metadata"]["name"],
            "volumeMode": spec.get("volumeMode") or "Filesystem",
        }
        if class_.get("mountOptions"):
            made["mountOptions"] = class_["mountOptions"]
        noted = {"name": name, "annotations": {PROVISIONED_BY: VIRTUAL}}
        c.create({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": noted, "spec": made})
        c.event(claim, "Normal", "ProvisioningSucceeded", f"Successfully provisioned volume {name}", SOURCE)
    return claim


def _lost(c: Client, claim: Json, reason: str, message: str) -> None:
    if (claim.get("status") or EMPTY).get("phase") != "Lost":
        c.event(claim, "Warning", reason, message, SOURCE)
        _claim_status(c, claim, {"phase": "Lost", "accessModes": None, "capacity": None})


def _claim_status(c: Client, claim: Json, status: Mapping[str, Any]) -> None:
    before = claim.get("status") or EMPTY
    changed = {name: value for name, value in status.items() if before.get(name) != value}
    if changed:
        c.patch_status(claim, changed, rv=claim["metadata"]["resourceVersion"])


# -- volumes ---------------------------------------------------------------------------------------------------------


def _volume(c: Client, volume: Json) -> None:
    """The phase of a volume, and what becomes of one whose claim is gone."""
    ref = volume["spec"].get("claimRef")
    if not ref or not ref.get("uid"):
        _phase(c, volume, "Available")
        return
    claim = c.get(Key(*CLAIM, ref["namespace"], ref["name"]), fresh=True)
    if claim is None or claim["metadata"]["uid"] != ref["uid"]:
        _reclaim(c, volume)
    elif claim["spec"].get("volumeName") == volume["metadata"]["name"]:
        _phase(c, volume, "Bound")
    elif not claim["spec"].get("volumeName"):
        if _mode(claim) != _mode(volume):
            name = claim["metadata"]["name"]
            head = f'Cannot bind PersistentVolume to requested PersistentVolumeClaim "{name}"'
            c.event(volume, "Warning", "VolumeMismatch", f"{head} due to incompatible volumeMode.", SOURCE)
            return
        _claim(c, claim)
    elif PROVISIONED_BY in _notes(volume) and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
        _reclaim(c, volume)  # the claim took another one
    else:
        _unbind(c, volume)


def _phase(c: Client, volume: Json, phase: str, message: str | None = None) -> Json:
    status = volume.get("status") or EMPTY
    if status.get("phase") == phase and status.get("message") == message:
        return volume
    wanted: dict[str, Any] = {"phase": phase, "message": message, "reason": None}
    if status.get("phase") != phase:
        wanted["lastPhaseTransitionTime"] = c.timestamp()
    changed: Json = c.patch_status(volume, wanted, rv=volume["metadata"]["resourceVersion"])
    return changed


def _reclaim(c: Client, volume: Json) -> None:
    if (volume.get("status") or EMPTY).get("phase") not in ("Released", "Failed"):
        volume = _phase(c, volume, "Released")
    policy = volume["spec"].get("persistentVolumeReclaimPolicy")
    if policy == "Delete" and volume_deletion.deletes_at_once(volume):
        if not is_terminating(volume):
            c.delete(volume, uid=volume["metadata"]["uid"])
    elif policy == "Delete":
        _give_up(c, volume, "VolumeFailedDelete", volume_deletion.problem(volume))
    elif policy == "Recycle":
        _give_up(c, volume, "VolumeFailedRecycle", "No recycler plugin found for the volume!")


def _give_up(c: Client, volume: Json, reason: str, problem: str) -> None:
    """Says, once, why the volume is not reclaimed; without a problem somebody else does it."""
    if not problem:
        return
    if (volume.get("status") or EMPTY).get("phase") != "Failed":
        c.event(volume, "Warning", reason, problem, SOURCE)
    _phase(c, volume, "Failed", problem)


def _unbind(c: Client, volume: Json) -> None:
    """Takes back a binding that lost: wholly if it was made here, else only which incarnation of the claim it is."""
    patch: dict[str, Any] = {"spec": {"claimRef": {"uid": None, "resourceVersion": None}}}
    if BY_CONTROLLER in _notes(volume):
        patch = {"metadata": {"annotations": {BY_CONTROLLER: None}}, "spec": {"claimRef": None}}
    _phase(c, c.patch(volume, patch, rv=volume["metadata"]["resourceVersion"]), "Available")


# -- binding ---------------------------------------------------------------------------------------------------------


def _bind(c: Client, claim: Json, volume: Json) -> None:
    """Makes claim and volume each other's: the volume first, each write against the version that was read."""
    ref = volume["spec"].get("claimRef") or EMPTY
    if ref.get("uid") != claim["metadata"]["uid"]:
        patch: dict[str, Any] = {"spec": {"claimRef": _ref(claim)}}
        if not _is_for(volume, claim):
            patch["metadata"] = {"annotations": {BY_CONTROLLER: "yes"}}
        volume = c.patch(volume, patch, rv=volume["metadata"]["resourceVersion"])
    volume = _grown(c, claim, _phase(c, volume, "Bound"))
    notes: dict[str, str] = {}
    change: dict[str, Any] = {}
    name = volume["metadata"]["name"]
    if not claim["spec"].get("volumeName"):
        change["spec"] = {"volumeName": name}
        notes[BY_CONTROLLER] = "yes"
    if COMPLETED not in _notes(claim):
        notes[COMPLETED] = "yes"
    if notes:
        change["metadata"] = {"annotations": notes}
        claim = c.patch(claim, change, rv=claim["metadata"]["resourceVersion"])
    status = {"phase": "Bound", "accessModes": volume["spec"]["accessModes"], "capacity": volume["spec"]["capacity"]}
    _claim_status(c, claim, status)


def _grown(c: Client, claim: Json, volume: Json) -> Json:
    """A virtual volume, as large as its claim asks for."""
    asked = _asked(claim)
    have = volume["spec"]["capacity"]["storage"]
    if _notes(volume).get(PROVISIONED_BY) != VIRTUAL or parse(have) >= parse(asked):
        return volume
    body = {"spec": {"capacity": {"storage": asked}}}
    grown: Json = c.patch(volume, body, rv=volume["metadata"]["resourceVersion"])
    return grown


def _best(volumes: list[Any], claim: Json, name: str, delayed: bool, node: Json | None) -> Any:
    """The volume a claim gets: one made for it, else the smallest of those with the fewest access modes."""
    modes = set(claim["spec"].get("accessModes") or ())
    fitting = [each for each in volumes if modes <= set(each["spec"].get("accessModes") or ()) and _fits(claim, each)]
    for volume in fitting:
        if _is_for(volume, claim):
            return volume
    if delayed and node is None:
        return None
    selector = claim["spec"].get("selector")
    chosen = None if selector is None else LabelSelector.compile(selector)
    free = [
        each
        for each in fitting
        if not each["spec"].get("claimRef")
        and (each.get("status") or EMPTY).get("phase") == "Available"
        and class_of(each) == name
        and (chosen is None or chosen.matches(each["metadata"].get("labels")))
        and (node is None or _reachable(each, node))
    ]
    return min(free, key=_size, default=None)


def _size(volume: Json) -> tuple[int, Any, str]:
    return len(volume["spec"]["accessModes"]), parse(volume["spec"]["capacity"]["storage"]), volume["metadata"]["name"]


def _fits(claim: Json, volume: Json) -> bool:
    """Whether a volume is large enough, of the right mode and not about to go."""
    if is_terminating(volume) or _mode(claim) != _mode(volume):
        return False
    wanted = claim["spec"].get("volumeAttributesClassName") or ""
    if wanted != (volume["spec"].get("volumeAttributesClassName") or ""):
        return False
    return parse(volume["spec"]["capacity"]["storage"]) >= parse(_asked(claim))


def _mismatch(claim: Json, volume: Json) -> str:
    """Why a claim cannot have the volume it names; "" when it can."""
    if is_terminating(volume):
        return f"the volume is marked for deletion {volume['metadata']['name']!r}".replace("'", '"')
    if parse(volume["spec"]["capacity"]["storage"]) < parse(_asked(claim)):
        return "requested PV is too small"
    if class_of(claim) != class_of(volume):
        return "storageClassName does not match"
    if _mode(claim) != _mode(volume):
        return "incompatible volumeMode"
    modes = set(claim["spec"].get("accessModes") or ())
    return "" if modes <= set(volume["spec"].get("accessModes") or ()) else "incompatible accessMode"


def _reachable(volume: Json, node: Json) -> bool:
    """Whether the volume can be used on a node."""
    required = (volume["spec"].get("nodeAffinity") or EMPTY).get("required")
    if required is None:
        return True
    labels = node["metadata"].get("labels")
    return any(_term_matches(term, labels) for term in required.get("nodeSelectorTerms") or ())


def _term_matches(term: Json, labels: Any) -> bool:
    needs = term.get("matchExpressions") or ()
    if not needs or any(each["operator"] not in ("In", "NotIn", "Exists", "DoesNotExist") for each in needs):
        return False
    return LabelSelector.compile({"matchExpressions": needs}).matches(labels)


def class_of(obj: Json) -> str:
    """The storage class of a claim or volume; "" for none."""
    return str(_notes(obj).get(CLASS_ANNOTATION) or obj["spec"].get("storageClassName") or "")


def _default_class(c: Client) -> str:
    marked = [
        each
        for each in c.list("storage.k8s.io/v1/StorageClass")
        if any(_notes(each).get(mark) == "true" for mark in DEFAULT_MARKS)
    ]
    marked.sort(key=lambda each: each["metadata"]["name"])
    newest = max(marked, key=lambda each: each["metadata"]["creationTimestamp"], default=None)
    return "" if newest is None else str(newest["metadata"]["name"])


def _is_for(volume: Json, claim: Json) -> bool:
    """Whether a volume names the claim, and no other incarnation of it."""
    ref, meta = volume["spec"].get("claimRef") or EMPTY, claim["metadata"]
    if (ref.get("namespace"), ref.get("name")) != (meta["namespace"], meta["name"]):
        return False
    return ref.get("uid") in (None, "", meta["uid"])


def _ref(claim: Json) -> dict[str, Any]:
    meta = claim["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": meta["namespace"],
        "name": meta["name"],
        "uid": meta["uid"],
        "resourceVersion": meta["resourceVersion"],
    }


def _asked(claim: Json) -> str:
    return str(((claim["spec"].get("resources") or EMPTY).get("requests") or EMPTY).get("storage", "0"))


def _mode(obj: Json) -> str:
    return obj["spec"].get("volumeMode") or "Filesystem"


def _notes(obj: Json) -> Json:
    return obj["metadata"].get("annotations") or EMPTY
