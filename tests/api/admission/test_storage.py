"""Storage and ingress classes in admission: defaults, protection, growth."""

from __future__ import annotations

from tests.api.admission.scene import admitted
from tests.api.cluster import refused

CLAIM = "v1/PersistentVolumeClaim"
STORAGE = "storage.k8s.io/v1/StorageClass"
MARK = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}


def claim(size="1Gi", **more):
    return {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **more}


def test_a_claim_gets_the_newest_default_class():
    c = admitted()
    c.create(STORAGE, "old", provisioner="x", metadata=MARK)
    c.now += 5
    c.create(STORAGE, "b", provisioner="x", metadata=MARK)
    c.create(STORAGE, "a", provisioner="x", metadata=MARK)
    c.create(CLAIM, "c", spec=claim())
    assert c.get(CLAIM, "c")["spec"]["storageClassName"] == "a"
    c.create(CLAIM, "d", spec=claim(storageClassName=""))
    assert c.get(CLAIM, "d")["spec"].get("storageClassName") == ""


def test_claims_and_volumes_are_protected_while_they_are_used():
    c = admitted()
    c.create(CLAIM, "c", spec=claim(), metadata={"finalizers": ["mine.io/x"]})
    assert c.get(CLAIM, "c")["metadata"]["finalizers"] == ["mine.io/x", "kubernetes.io/pvc-protection"]
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    c.create("v1/PersistentVolume", "v", spec=spec)
    assert c.get("v1/PersistentVolume", "v")["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]


def test_only_bound_claims_of_a_class_that_allows_it_grow():
    c = admitted()
    c.create(STORAGE, "fixed", provisioner="x")
    c.create(STORAGE, "grows", provisioner="x", allowVolumeExpansion=True)
    grow = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    for name in ("fixed", "grows"):
        c.create(CLAIM, name, spec=claim(storageClassName=name))
        error = refused(c.merge, CLAIM, name, grow)
        assert error.message == (
            f'persistentvolumeclaims "{name}" is forbidden: Only bound persistent volume claims can be expanded'
        )
        c.merge(CLAIM, name, {"status": {"phase": "Bound"}}, sub="status")
    assert (
        "the storageclass that provisions the pvc must support resize" in refused(c.merge, CLAIM, "fixed", grow).message
    )
    c.merge(CLAIM, "grows", grow)
    assert c.get(CLAIM, "grows")["spec"]["resources"]["requests"] == {"storage": "2Gi"}


def test_an_ingress_gets_the_default_class_unless_it_names_one():
    c = admitted()
    kind, mark = (
        "networking.k8s.io/v1/Ingress",
        {"annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}},
    )
    spec = {"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}}
    c.create(kind, "before", spec=spec)
    assert "ingressClassName" not in c.get(kind, "before")["spec"]
    c.create("networking.k8s.io/v1/IngressClass", "usual", spec={"controller": "x.io/y"}, metadata=mark)
    c.create(kind, "a", spec=spec)
    c.create(kind, "b", spec={**spec, "ingressClassName": "other"})
    c.create(kind, "c", spec=spec, metadata={"annotations": {"kubernetes.io/ingress.class": "old"}})
    assert [c.get(kind, n)["spec"].get("ingressClassName") for n in "abc"] == ["usual", "other", None]
