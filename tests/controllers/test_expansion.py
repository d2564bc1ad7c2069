"""Claims that grow: somebody else makes their volumes larger."""

import pytest

from steersman.controllers.expansion import RESIZER, VolumeExpansion
from steersman.kernel.object import Key
from tests.controllers.worlds import client, explore, make, one, settle, user

KEY = Key("", "PersistentVolumeClaim", "default", "web")
SIZE = {"requests": {"storage": "1Gi"}}
MODES = ["ReadWriteOnce"]
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"accessModes": MODES, "volumeName": "disk", "resources": SIZE},
}
VOLUME = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "disk"},
    "spec": {"accessModes": MODES, "capacity": {"storage": "1Gi"}, "gcePersistentDisk": {"pdName": "d"}},
}


def bind(c):
    """What the binder does."""
    ref = {"namespace": "default", "name": "web", "uid": c.get(KEY)["metadata"]["uid"]}
    c.patch(Key("", "PersistentVolume", "", "disk"), {"spec": {"claimRef": ref}})
    c.patch_status(KEY, {"phase": "Bound", "capacity": {"storage": "1Gi"}})


def grow(c):
    c.patch(KEY, {"spec": {"resources": {"requests": {"storage": "2Gi"}}}})


def resizer(w):
    return (one(w, "v1/PersistentVolumeClaim", "web").metadata.get("annotations") or {}).get(RESIZER)


def test_a_volume_of_an_old_kind_is_handed_to_its_driver():
    w = settle(make([VolumeExpansion], [CLAIM, VOLUME]))
    bind(client(w))
    assert resizer(settle(w)) is None
    grow(client(w))
    assert resizer(settle(w)) == "pd.csi.storage.gke.io"


@pytest.mark.parametrize(
    "source", [{"nfs": {"server": "s", "path": "/"}}, {"csi": {"driver": "d", "volumeHandle": "h"}}]
)
def test_of_any_other_nobody_is_named(source):
    spec = {name: value for name, value in VOLUME["spec"].items() if name != "gcePersistentDisk"}
    w = settle(make([VolumeExpansion], [CLAIM, {**VOLUME, "spec": {**spec, **source}}]))
    bind(client(w))
    grow(client(w))
    assert resizer(settle(w)) is None


def test_a_volume_of_another_claim_is_left_alone():
    w = settle(make([VolumeExpansion], [CLAIM, VOLUME]))
    bind(client(w))
    client(w).patch(Key("", "PersistentVolume", "", "disk"), {"spec": {"claimRef": {"uid": "0"}}})
    grow(client(w))
    assert resizer(settle(w)) is None


def test_every_order_of_events_ends_alike():
    found = explore(
        lambda: make(
            [VolumeExpansion], [CLAIM, VOLUME], [user("bind", bind), user("grow", grow)], lag=1, budgets=(1, 1)
        )
    )
    assert found.states > 1 and found.terminal and not found.findings
    assert {resizer(w) for w in found.terminal} == {"pd.csi.storage.gke.io"}
