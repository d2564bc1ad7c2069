"""Laws of server-side apply over random histories of applies and updates."""

import copy

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steersman.api.errors import ApiError
from tests.api.cluster import Cluster

DEPLOYMENT = "apps/v1/Deployment"

WORDS = st.sampled_from(["a", "b", "c", "d"])
SMALL = st.integers(0, 3)


def unique(items):
    return list({item["name"]: item for item in items}.values())


CONTAINERS = st.lists(
    st.fixed_dictionaries(
        {"name": WORDS, "image": st.sampled_from(["i:1", "i:2"])},
        optional={
            "args": st.lists(WORDS, min_size=1, max_size=2),
            "env": st.lists(st.fixed_dictionaries({"name": WORDS, "value": WORDS}), min_size=1, max_size=3).map(unique),
            "workingDir": WORDS,
        },
    ),
    min_size=1,
    max_size=3,
).map(unique)
LABELS = st.dictionaries(WORDS, WORDS, min_size=1, max_size=3)


@st.composite
def configs(draw):
    spec = {"template": {"spec": {"containers": draw(CONTAINERS)}}}
    if draw(st.booleans()):
        spec["replicas"] = draw(SMALL)
    if draw(st.booleans()):
        spec["paused"] = True
    meta = {}
    if draw(st.booleans()):
        meta["labels"] = draw(LABELS)
    if draw(st.booleans()):
        meta["finalizers"] = [f"e.io/{word}" for word in sorted(draw(st.sets(WORDS, min_size=1)))]
    return {"metadata": meta, "spec": spec}


def whole(config):
    """The configuration with what every Deployment needs."""
    out = copy.deepcopy(config)
    out["spec"]["selector"] = {"matchLabels": {"app": "web"}}
    out["spec"]["template"]["metadata"] = {"labels": {"app": "web"}}
    return out


def leaves(config, value, path=()):
    """(what was applied, what is there) for every applied leaf."""
    if isinstance(config, dict):
        for name, item in config.items():
            if item in ([], {}):
                continue
            yield from leaves(item, (value or {}).get(name), (*path, name))
    elif isinstance(config, list) and config and isinstance(config[0], dict):
        for item in config:
            twin = next((other for other in value or () if other.get("name") == item["name"]), None)
            yield from leaves(item, twin, (*path, item["name"]))
    elif path and path[-1] == "finalizers":
        yield path, config, [item for item in value or () if item in config]
    else:
        yield path, config, value


LAW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
HISTORIES = st.lists(st.tuples(st.sampled_from(["a", "b", "u"]), configs()), min_size=1, max_size=4)


def play(history):
    made = Cluster()
    made.create("v1/Namespace", "shop")
    for manager, config in history:
        try:
            if manager != "u":
                made.apply(DEPLOYMENT, "web", manager=manager, force=True, **whole(config))
            elif made.read(DEPLOYMENT, "web") is None:
                made.create(DEPLOYMENT, "web", manager="u", **whole(config))
            else:
                made.update(DEPLOYMENT, "web", manager="u", **whole(config))
        except ApiError as error:
            assert error.code == 422
    return made


@LAW
@given(HISTORIES, configs())
def test_what_is_applied_is_there_and_again_changes_nothing(history, config):
    made = play(history)
    try:
        made.apply(DEPLOYMENT, "web", manager="a", force=True, **whole(config))
    except ApiError as error:
        assert error.code == 422
        return
    obj = made.get(DEPLOYMENT, "web")
    for path, wanted, found in leaves(whole(config), obj):
        assert found == wanted, path
    before = made.read(DEPLOYMENT, "web")
    made.apply(DEPLOYMENT, "web", manager="a", force=True, **whole(config))
    made.apply(DEPLOYMENT, "web", manager="a", force=False, **whole(config))
    assert made.read(DEPLOYMENT, "web") is before


@LAW
@given(HISTORIES)
def test_every_owned_field_is_there_and_has_one_set_of_owners(history):
    made = play(history)
    obj = made.read(DEPLOYMENT, "web")
    if obj is None:
        return
    for entry in obj.managers:
        assert entry.fields
        for path in entry.fields.paths():
            value = obj.value
            for element in path:
                if element.startswith("f:"):
                    assert element[2:] in value or value == {}, (entry.name, path)
                    value = value.get(element[2:])
                elif element.startswith("k:"):
                    value = next(item for item in value if f'"name":"{item.get("name")}"' in element)
                else:
                    assert element[3:-1] in value


def only(config, which):
    """The part of a configuration about one half of the fields."""
    spec = config["spec"]
    if which == "a":
        kept = {"replicas": spec["replicas"]} if "replicas" in spec else {}
        return {"metadata": config["metadata"], "spec": kept}
    kept = {name: value for name, value in spec.items() if name != "replicas"}
    return {"metadata": {}, "spec": kept}


@LAW
@given(configs(), configs(), configs())
def test_applies_of_disjoint_fields_commute(base, first, second):
    results = []
    for order in ("ab", "ba"):
        made = Cluster()
        made.create("v1/Namespace", "shop")
        made.apply(DEPLOYMENT, "web", manager="base", spec=whole(base)["spec"])
        base_spec = {"a": only(first, "a"), "b": only(second, "b")}
        for manager in order:
            made.apply(DEPLOYMENT, "web", manager=manager, force=True, **copy.deepcopy(base_spec[manager]))
        found = made.get(DEPLOYMENT, "web")
        del found["metadata"]["resourceVersion"]
        results.append((found, {key[0]: entry for key, entry in made.managed(DEPLOYMENT, "web").items()}))
    assert results[0] == results[1]
