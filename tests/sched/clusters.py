"""Small clusters for the scheduler's tests: builders of nodes and pods, and strategies that favour clashes."""

from typing import Any

from hypothesis import strategies as st

Json = dict[str, Any]


def node(name: str, cpu: str = "4", memory: str = "8Gi", pods: str = "110", **more: Any) -> Json:
    """`more`: labels, taints, unschedulable, and resources as `extra`."""
    allocatable = {"cpu": cpu, "memory": memory, "pods": pods, **more.get("extra", {})}
    spec = {field: more[field] for field in ("taints", "unschedulable") if field in more}
    return {
        "metadata": {"name": name, "labels": more.get("labels", {})},
        "spec": spec,
        "status": {"allocatable": allocatable},
    }


def container(name: str = "c", requests: Json | None = None, **more: Any) -> Json:
    return {"name": name, "resources": {"requests": requests} if requests is not None else {}, **more}


def pod(name: str, *containers: Json, uid: str = "", status: Json | None = None, **spec: Any) -> Json:
    return {
        "metadata": {"name": name, "namespace": "default", "uid": uid or f"uid-{name}"},
        "spec": {"containers": list(containers) or [container()], **spec},
        "status": status or {},
    }


def required(*terms: Json) -> Json:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


KEYS = ("zone", "disk", "size")
VALUES = ("a", "b", "3", "7")
EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")
NAMES = tuple(f"n{index}" for index in range(6))

labels = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=3)
taints = st.lists(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(("k", "l", "node.kubernetes.io/unschedulable")),
            "value": st.sampled_from(VALUES),
            "effect": st.sampled_from(EFFECTS),
        }
    ),
    max_size=2,
)
cpus = st.sampled_from(("0", "1m", "100m", "250m", "1", "1500m", "3"))
memories = st.sampled_from(("0", "1", "100Mi", "300Mi", "1Gi", "2.5Gi", "1500M"))
devices = st.sampled_from(("0", "1", "2"))
requests = st.fixed_dictionaries(
    {}, optional={"cpu": cpus, "memory": memories, "example.com/device": devices, "ephemeral-storage": memories}
)


@st.composite
def nodes(draw: st.DrawFn, names: st.SearchStrategy[str]) -> Json:
    extra = draw(st.fixed_dictionaries({}, optional={"example.com/device": devices, "ephemeral-storage": memories}))
    return node(
        draw(names),
        draw(st.sampled_from(("0", "1", "2", "4", "6"))),
        draw(st.sampled_from(("1Gi", "2Gi", "3Gi", "8Gi"))),
        draw(st.sampled_from(("1", "2", "110"))),
        extra=extra,
        labels=draw(labels),
        taints=draw(taints),
        unschedulable=draw(st.sampled_from((False, False, False, True))),
    )


def _expressions() -> st.SearchStrategy[Json]:
    key = st.sampled_from(KEYS)
    several = st.fixed_dictionaries(
        {
            "key": key,
            "operator": st.sampled_from(("In", "NotIn")),
            "values": st.lists(st.sampled_from(VALUES), min_size=1, max_size=2),
        }
    )
    presence = st.fixed_dictionaries({"key": key, "operator": st.sampled_from(("Exists", "DoesNotExist"))})
    order = st.fixed_dictionaries(
        {
            "key": key,
            "operator": st.sampled_from(("Gt", "Lt")),
            "values": st.lists(st.sampled_from(("5", "b")), min_size=1, max_size=1),
        }
    )
    return several | presence | order


def _names() -> st.SearchStrategy[Json]:
    return st.fixed_dictionaries(
        {
            "key": st.just("metadata.name"),
            "operator": st.sampled_from(("In", "In", "NotIn")),
            "values": st.lists(st.sampled_from(NAMES), min_size=1, max_size=1),
        }
    )


terms = st.fixed_dictionaries(
    {},
    optional={
        "matchExpressions": st.lists(_expressions(), max_size=2),
        "matchFields": st.lists(_names(), max_size=2),
    },
)
node_affinity = st.fixed_dictionaries(
    {},
    optional={
        "requiredDuringSchedulingIgnoredDuringExecution": st.fixed_dictionaries(
            {"nodeSelectorTerms": st.lists(terms, min_size=1, max_size=2)}
        ),
        "preferredDuringSchedulingIgnoredDuringExecution": st.lists(
            st.fixed_dictionaries({"weight": st.sampled_from((1, 30, 100)), "preference": terms}), max_size=2
        ),
    },
)
tolerations = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "key": st.sampled_from(("k", "l", "node.kubernetes.io/unschedulable")),
            "operator": st.sampled_from(("Exists", "Equal")),
            "value": st.sampled_from(VALUES),
            "effect": st.sampled_from(EFFECTS),
        },
    ),
    max_size=2,
)
ports = st.lists(
    st.fixed_dictionaries(
        {"containerPort": st.just(80), "hostPort": st.sampled_from((80, 80, 80, 443))},
        optional={"hostIP": st.sampled_from(("10.0.0.1", "0.0.0.0")), "protocol": st.sampled_from(("TCP", "UDP"))},
    ),
    min_size=1,
    max_size=1,
)
no_ports: st.SearchStrategy[list[Json]] = st.just([])


@st.composite
def pods(draw: st.DrawFn, names: st.SearchStrategy[str], placed: st.SearchStrategy[str | None]) -> Json:
    """Pods of all shapes; `placed` gives the node each is on, or None."""
    run = [container("c", draw(requests), ports=draw(no_ports | ports))]
    if draw(st.booleans()):
        run.append(container("d", draw(requests)))
    optional = st.fixed_dictionaries(
        {},
        optional={
            "nodeSelector": labels,
            "affinity": st.fixed_dictionaries({"nodeAffinity": node_affinity}),
            "tolerations": tolerations,
            "overhead": requests,
            "resources": st.fixed_dictionaries({"requests": requests}),
            "priority": st.sampled_from((-1, 0, 10)),
        },
    )
    initial = [
        container(f"i{index}", draw(requests), restartPolicy=draw(st.sampled_from(("Always", "Never"))))
        for index in range(draw(st.sampled_from((0, 0, 1, 2))))
    ]
    spec = {**draw(optional), "initContainers": initial}
    if (name := draw(placed)) is not None:
        spec["nodeName"] = name
    return pod(draw(names), *run, **spec)
