"""The sorted map against a plain dict: contents, order, ranges; and that no owner's copy sees another's changes."""

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, rule

from steersman.kernel import sortedmap
from steersman.kernel.sortedmap import BUCKET, SortedMap

KEYS = st.integers(0, 60)


def entries(some):
    return list(some.items())


def assert_well_formed(some):
    firsts = [bucket.keys[0] for bucket in some._buckets]
    assert firsts == some._firsts
    assert firsts == sorted(firsts)
    assert all(len(bucket.keys) == len(bucket.values) <= sortedmap.BUCKET for bucket in some._buckets)
    assert some.size == len(some) == sum(len(bucket.keys) for bucket in some._buckets)


class Against(RuleBasedStateMachine):
    """Several maps, forked from each other, each with a dict that says what it must hold."""

    maps = Bundle("maps")

    def __init__(self):
        super().__init__()
        self.all = []
        self.bucket = sortedmap.BUCKET
        sortedmap.BUCKET = 12  # splits and empties often

    def teardown(self):
        sortedmap.BUCKET = self.bucket
        for holder in self.all:
            assert entries(holder["map"]) == sorted(holder["dict"].items())
            assert_well_formed(holder["map"])

    @rule(target=maps)
    def empty(self):
        owner = object()
        holder = {"owner": owner, "map": SortedMap(owner), "dict": {}}
        self.all.append(holder)
        return holder

    @rule(target=maps, source=maps)
    def fork(self, source):
        source["owner"] = object()
        other = {"owner": object(), "map": source["map"], "dict": dict(source["dict"])}
        self.all.append(other)
        return other

    @rule(holder=maps, keys=st.lists(KEYS, max_size=20), value=st.integers())
    def put(self, holder, keys, value):
        for key in keys:
            holder["map"] = holder["map"].writable(holder["owner"])
            assert holder["map"].put(key, value) == holder["dict"].get(key)
            holder["dict"][key] = value

    @rule(holder=maps, keys=st.lists(KEYS, max_size=20))
    def pop(self, holder, keys):
        for key in keys:
            holder["map"] = holder["map"].writable(holder["owner"])
            assert holder["map"].pop(key) == holder["dict"].pop(key, None)

    @rule(holder=maps, key=KEYS, after=st.booleans())
    def read(self, holder, key, after):
        some, model = holder["map"], holder["dict"]
        assert some.get(key, "none") == model.get(key, "none")
        assert (key in some) == (key in model)
        wanted = sorted(item for item in model.items() if item[0] > key or (item[0] == key and not after))
        assert list(some.items(key, after=after)) == wanted
        assert some.first() == (min(model.items()) if model else None)
        assert list(some.values()) == [value for _, value in sorted(model.items())]


Against.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestAgainst = Against.TestCase


@settings(max_examples=20, deadline=None)
@given(st.permutations(range(3 * BUCKET)))
def test_buckets_stay_within_their_size(order):
    some = SortedMap(owner := object())
    for key in order:
        some.put(key, str(key))
    assert_well_formed(some)
    assert [key for key, _ in entries(some)] == list(range(3 * BUCKET))
    assert some.writable(owner) is some


def test_keys_that_only_count_upwards_leave_full_buckets():
    some = SortedMap(object())
    for key in range(100 * BUCKET):
        some.put(key, None)
    assert len(some._buckets) <= 105


def test_a_write_after_a_fork_copies_one_bucket():
    some = SortedMap(object())
    for key in range(10 * BUCKET):
        some.put(key, key)
    other = some.writable(object())
    other.put(5, "changed")
    assert some.get(5) == 5
    shared = sum(a is b for a, b in zip(some._buckets, other._buckets, strict=True))
    assert shared == len(some._buckets) - 1
