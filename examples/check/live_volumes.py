"""A controller that knows its objects by name deletes the volumes of a live StatefulSet.

When a StatefulSet is deleted, the cleaner deletes the volumes that carry its name. Somebody deletes the StatefulSet and
makes it again: the cleaner, which saw it gone, finds the volume of the *new* one and deletes that. (K8SSAND-559,
cass-operator issue 118; the same fault was found in seven other operators.) The cure is to look at the uid: the name is
the slot, the uid is who is in it. And at the order of reads: first the volumes, then who is alive.

    steersman check examples/check/live_volumes.py
"""

import steersman as sm

SET = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "metadata": {"name": "db", "namespace": "default"},
    "spec": {
        "replicas": 1,
        "serviceName": "db",
        "selector": {"matchLabels": {"app": "db"}},
        "template": {
            "metadata": {"labels": {"app": "db"}},
            "spec": {"containers": [{"name": "db", "image": "db:1"}]},
        },
    },
}
VOLUME = sm.Key("", "PersistentVolumeClaim", "default", "data-db-0")


def set_of(volume):
    """The StatefulSet a volume belongs to, by label."""
    return [sm.Key("apps", "StatefulSet", volume.metadata.namespace, volume.metadata.labels["set"])]


class Maker(sm.Controller):
    """Gives a StatefulSet its volume and then reports it ready. Waits for the volume of a predecessor to go."""

    kind = "apps/v1/StatefulSet"
    watches = {"v1/PersistentVolumeClaim": set_of}

    def reconcile(self, c, key):
        db = c.get(key)
        if db is None or db.status.readyReplicas:
            return
        volume = c.get(VOLUME)
        if volume is None:
            volume = c.create(volume_of(db))
        if volume.metadata.labels["owner"] == db.metadata.uid:
            c.patch_status(key, {"replicas": 1, "readyReplicas": 1}, rv=db.metadata.resourceVersion)


class CleanByName(sm.Controller):
    """Deletes the volumes of a StatefulSet that is gone."""

    kind = "apps/v1/StatefulSet"

    def reconcile(self, c, key):
        if c.get(key) is None:
            for volume in volumes(c, key):
                c.delete(volume)


class CleanByUid(CleanByName):
    """Deletes the volumes of incarnations that are gone. A volume that comes late wakes it too."""

    watches = {"v1/PersistentVolumeClaim": set_of}

    def reconcile(self, c, key):
        found = volumes(c, key)
        live = c.get(key, fresh=True)
        for volume in found:
            if live is None or volume.metadata.labels["owner"] != live.metadata.uid:
                c.delete(volume, uid=volume.metadata.uid)


def volumes(c, key):
    """The volumes that carry a StatefulSet's name."""
    return c.list("v1/PersistentVolumeClaim", key.namespace, labels=f"set={key.name}")


def volume_of(db):
    """The volume of the first replica, labelled with its set's name and uid."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": VOLUME.name,
            "namespace": VOLUME.namespace,
            "labels": {"set": db.metadata.name, "owner": db.metadata.uid},
        },
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }


def scenario(cleaner):
    """A StatefulSet that somebody deletes and makes again."""
    w = sm.Scenario(cleaner.__name__)
    db = w.apply(SET)
    w.run(Maker, cleaner)
    w.user("delete", lambda c: c.delete(db))
    w.user("make it again", lambda c: c.create(SET))
    w.always("a ready StatefulSet keeps its volume", lambda s: not s[db].status.readyReplicas or s[VOLUME])
    return w


def test_by_name_deletes_live_volumes():
    verdict = sm.check(scenario(CleanByName), lag=1)
    assert [violation.name for violation in verdict.violations] == ["a ready StatefulSet keeps its volume"]


def test_by_uid_holds():
    sm.check(scenario(CleanByUid), lag=1).assert_holds(complete=True)
