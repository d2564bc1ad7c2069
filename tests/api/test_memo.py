"""The write memo: it answers what the writer would, for whatever the key depends on."""

from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.api.begin import Api
from steersman.api.errors import ApiError
from steersman.api.kinds import Kinds
from steersman.api.memo import MemoWriter
from steersman.api.writer import Writer
from steersman.kernel.effect import Call, Commit, Request
from steersman.kernel.identity import uid_text
from steersman.kernel.object import Key
from steersman.kernel.store import Store
from steersman.kernel.value import Frozen, freeze

KINDS = Kinds.builtin()
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
NOW = 1_767_225_600 * 1_000_000


def key(name):
    return Key("", "ConfigMap", "default", name)


def body(name, value):
    return freeze(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "default"},
            "data": {"v": value},
        }
    )


def do(api, store, request):
    """Takes a request to its end; its outcome in a form to compare."""
    try:
        outcome = api.begin(store, request)
        while isinstance(outcome, Call):
            outcome = outcome.resume(uid_text(str(outcome.question[1]), 0))
    except ApiError as error:
        return ("refused", error.reason, str(error))
    if isinstance(outcome, Commit):
        store.commit(outcome)
    found = store.get(request.key)
    return (store.rev, None if found is None else (found.rv, bytes(found.to_json())))


def started(writer):
    api, store = Api(KINDS, writer), Store()
    do(api, store, Request("create", Key("", "Namespace", "", "default"), freeze(NAMESPACE), manager="m", now=NOW))
    return api, store


BODIES = [body(name, value) for name in ("a", "b") for value in ("1", "2", 3)]
PATCHES = [freeze({"data": {"v": value}}) for value in ("1", "2", None)]
LIST_PATCH = freeze([{"op": "replace", "path": "/data/v", "value": "9"}])


@st.composite
def requests(draw):
    verb = draw(st.sampled_from(["create", "update", "patch", "apply", "delete"]))
    name = draw(st.sampled_from(["a", "b"]))
    options = {}
    if verb == "patch":
        given = draw(st.sampled_from([*PATCHES, LIST_PATCH]))
        options["patch"] = "json" if isinstance(given, list) else "merge"
    else:
        given = draw(st.sampled_from([item for item in BODIES if item["metadata"]["name"] == name]))
    if verb == "apply":
        options["force"] = draw(st.booleans())
    manager = draw(st.sampled_from(["one", "two", ""]))
    actor = draw(st.sampled_from(["x", "y"]))
    return Request(
        verb, key(name), given, "", actor, manager, NOW + draw(st.integers(0, 1)) * 1_000_000, Frozen(options)
    )


@settings(deadline=None, max_examples=150)
@given(st.lists(st.tuples(requests(), st.booleans()), max_size=25))
def test_a_memo_is_not_noticed(steps):
    """Two stores take the same requests in turn, so that the memo meets the same write at other revisions."""
    memo = MemoWriter()
    plain, kept = [started(Writer()) for _ in range(2)], [started(memo) for _ in range(2)]
    for request, which in steps:
        assert do(*plain[which], request) == do(*kept[which], request)


def test_equal_writes_are_done_once():
    memo = MemoWriter()
    first, second = started(memo), started(memo)
    before = memo.misses
    request = Request("create", key("a"), BODIES[0], manager="m", now=NOW)
    assert do(*first, request) == do(*second, request)
    assert memo.misses == before + 1 and memo.hits >= 1


def test_a_refusal_is_remembered_too():
    memo = MemoWriter()
    request = Request("create", key("a"), BODIES[2], manager="m", now=NOW)
    first, second = do(*started(memo), request), do(*started(memo), request)
    assert first == second and first[0] == "refused"


def test_who_wrote_is_the_actor_where_no_manager_is_claimed():
    memo = MemoWriter()
    managers = []
    for actor in ("x", "y"):
        api, store = started(memo)
        do(api, store, Request("create", key("a"), BODIES[0], actor=actor, now=NOW))
        managers.append([manager.name for manager in store.get(key("a")).managers])
    assert managers == [["x"], ["y"]]


def test_a_full_memo_is_emptied(monkeypatch):
    monkeypatch.setattr("steersman.api.memo.LIMIT", 3)
    memo = MemoWriter()
    api, store = started(memo)
    for number in range(10):
        do(api, store, Request("create", key(f"n{number}"), body(f"n{number}", "1"), manager="m", now=NOW))
    assert len(memo._known) <= 3 and store.get(key("n9")) is not None


def test_nothing_changed_gives_this_paths_own_version():
    """Two paths share the old version's sections, at different revisions."""
    memo = MemoWriter()
    create = Request("create", key("a"), BODIES[0], manager="m", now=NOW)
    same = Request("update", key("a"), BODIES[0], manager="m", now=NOW)
    paths = [started(memo), started(memo)]
    do(*paths[1], Request("create", key("b"), BODIES[3], manager="m", now=NOW))
    for api, store in paths:
        do(api, store, create)
    assert paths[0][1].get(key("a")).rv != paths[1][1].get(key("a")).rv
    assert paths[0][1].get(key("a")).meta is paths[1][1].get(key("a")).meta
    for api, store in paths:
        before = (store.rev, store.get(key("a")).rv)
        do(api, store, same)
        assert (store.rev, store.get(key("a")).rv) == before
