"""Law: a status whose fields are found by shape ends in the same managedFields as one that is compared."""

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steersman.api import status_fields, write
from steersman.api.bind import bind
from steersman.api.by import By
from steersman.api.errors import ApiError
from steersman.api.kinds import Kinds
from steersman.kernel.fieldset import from_json
from steersman.kernel.object import Key, Manager, Object
from tests.api.values import value

KINDS = Kinds.builtin()
POD = KINDS.get("", "Pod")
NODE = KINDS.get("", "Node")
JOB = KINDS.get("batch", "Job")
TIMES = [f"2026-05-28T20:00:{second:02d}Z" for second in range(60)]
CONDITIONS = ["Ready", "PodScheduled", "Initialized", "Ready"]


def status_of(seed: random.Random) -> dict[str, Any]:
    """A status as kubelets write it, with every part there or not, and sometimes with what they never do."""
    out: dict[str, Any] = {"phase": seed.choice(["Pending", "Running"]), "qosClass": "Burstable"}
    types = seed.sample(CONDITIONS, seed.randrange(1, 4))
    out["conditions"] = [
        {"type": kind, "status": seed.choice(["True", "False"]), "lastTransitionTime": seed.choice(TIMES[:2])}
        for kind in types
    ]
    if seed.random() < 0.7:
        address = seed.choice(["10.0.0.1", "10.0.0.2"])
        out |= {"podIP": address, "podIPs": [{"ip": address}, {"ip": "fd00::1"}][: seed.choice([1, 1, 2])]}
        seed.shuffle(out["podIPs"])
        out["podIP"] = out["podIPs"][0]["ip"]
    if seed.random() < 0.7:
        state = seed.choice([{}, {"running": {"startedAt": TIMES[0]}}, {"waiting": {"reason": "Slow"}}])
        out["containerStatuses"] = [
            {"name": name, "ready": seed.random() < 0.5, "restartCount": 0, "image": "i", "imageID": "", "state": state}
            for name in ("app", "log")[: seed.choice([1, 2])]
        ]
    return dict(seed.sample(list(out.items()), len(out)))


def edited(seed: random.Random, status: dict[str, Any]) -> dict[str, Any]:
    """The same status with one thing changed, as most writes have it."""
    out = {**status}
    if not out:
        return status_of(seed)
    name = seed.choice(list(out))
    what = seed.randrange(4)
    if what == 0:
        del out[name]
    elif what == 1 and isinstance(out[name], list):
        out[name] = out[name][::-1]
    elif what == 2 and isinstance(out[name], list):
        out[name] = out[name][:-1]
    elif what == 3:
        out["message"] = seed.choice(["a", "b"])
    return out


def after(obj: Object, status: Any, manager: str, time: str) -> tuple[Object, tuple[Manager, ...]]:
    """The version after a status write, and its managers as the general road has them."""
    by = By(manager, time, "Warn", "status")
    kind = KINDS.get(*obj.key.gk)
    new = write.update(kind, obj, {"status": status}, by).obj
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write, "reported", lambda *_: None)
        general = write.update(kind, obj, {"status": status}, by).obj
    assert new.status is general.status is None or new.status.raw == general.status.raw
    return new, general.managers


def shown(managers: tuple[Manager, ...]) -> list[Any]:
    return [manager.to_json() for manager in managers]


def born(kind_name: str) -> Object:
    kind = KINDS.get("", kind_name) if kind_name != "Job" else JOB
    template = {"spec": {"containers": [{"name": "app", "image": "i"}], "restartPolicy": "Never"}}
    spec: dict[str, Any] = {"Pod": template["spec"], "Node": {}, "Job": {"template": template, "suspend": True}}[
        kind_name
    ]
    key = Key(kind.group, kind_name, "" if kind_name == "Node" else "ns", "web")
    body = {"metadata": {"name": "web"}, "spec": spec}
    return write.create(kind, key, body, "u-1", By("test", TIMES[0])).obj


@given(st.integers(0, 1 << 32), st.booleans(), st.booleans())
@settings(max_examples=150, deadline=None)
def test_the_writes_of_kubelets_end_in_the_same_entries(number, bound, others):
    seed = random.Random(number)
    obj = bind(born("Pod"), "n1", TIMES[0]) if bound else born("Pod")
    status = status_of(seed)
    for step in range(8):
        status = edited(seed, status) if seed.random() < 0.6 else status_of(seed)
        manager = seed.choice(["kubelet", "other"]) if others and step > 4 else "kubelet"
        obj, general = after(obj, status, manager, TIMES[step])
        assert shown(obj.managers) == shown(general)


@given(
    st.sampled_from(["Pod", "Node", "Job"]).flatmap(
        lambda name: st.tuples(
            st.just(name),
            st.lists(value(KINDS.get("batch" if name == "Job" else "", name).schema.fields["status"]), max_size=4),
        )
    )
)
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_statuses_end_in_the_same_entries(drawn):
    name, statuses = drawn
    obj = born(name)
    for step, status in enumerate(statuses):
        try:
            obj, general = after(obj, status, "kubelet", TIMES[step])
        except ApiError:
            continue
        assert shown(obj.managers) == shown(general)


def test_a_kubelet_takes_the_short_road(monkeypatch):
    """The law would also hold if everything took the general one."""
    obj = bind(born("Pod"), "n1", TIMES[0])
    monkeypatch.setattr(write, "changes", None)
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": TIMES[0]}
    for step, phase in enumerate(["Pending", "Running", "Succeeded"]):
        status = {
            "phase": phase,
            "qosClass": "BestEffort",
            "podIP": "10.0.0.1",
            "conditions": [condition],
            "reason": "r",
        }
        obj = write.update(POD, obj, {"status": status}, By("kubelet", TIMES[step], "Warn", "status")).obj
    (mine,) = [entry for entry in obj.managers if entry.name == "kubelet"]
    assert mine.time == TIMES[2]
    assert mine.fields == from_json(
        {"f:status": {"f:phase": {}, "f:podIP": {}, "f:podIPs": {".": {}, 'k:{"ip":"10.0.0.1"}': {".": {}, "f:ip": {}}},
                      "f:reason": {}}}
    )  # fmt: skip


def test_tables_are_bounded(monkeypatch):
    monkeypatch.setattr(status_fields, "REMEMBERED", 3)
    shapes = status_fields.Shapes(POD.schema)
    for number in range(10):
        obj = born("Pod")
        status = {"phase": "Running", "conditions": [{"type": f"c-{number}", "status": "True"}]}
        new = write.update(POD, obj, {"status": status}, By("kubelet", TIMES[0], "Warn", "status")).obj
        shapes.unowned(new.status)
        assert max(len(shapes._sets), len(shapes._standings), len(shapes._born)) <= 3
