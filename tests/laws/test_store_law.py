"""Law: the store equals a plain dict, whatever is put, removed, forked and listed, in whatever order.

Every store of the machine has a model, a dict from key to object. After every step, the lists, counts, indexes and
running sums of each store are what a recomputation from its model gives; so a fork that saw another's write, or a
bucket changed in place under somebody else, shows at once. A store that never forks (the head of simulate and run)
takes the same writes as the forked ones and must be their equal.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule
from xxhash import xxh3_128_intdigest

from steersman.kernel import sortedmap
from steersman.kernel.effect import Commit
from steersman.kernel.object import MASK, PARSED, Key
from steersman.kernel.store import NODE, OWNER, Store, StoreConfig, label_index
from tests.kernel.samples import POD, SET, thing

NODES = ("", "Node")
LEASE = ("coordination.k8s.io", "Lease")
GKS = st.sampled_from([POD, POD, SET, LEASE, NODES])
NAMESPACES = st.sampled_from(["a", "a-1"])
NAMES = st.sampled_from([f"n{number}" for number in range(7)])
UIDS = st.lists(st.sampled_from(["u1", "u2", "u3"]), max_size=2)
APPS = st.sampled_from([None, "web", "db"])
HOSTS = st.sampled_from([None, "h1", "h2"])


def canonical(obj):
    """Any function of the content will do."""
    return xxh3_128_intdigest(f"{obj.key}{obj.node}{obj.meta.digest}".encode())


def config(compact=False):
    return StoreConfig(
        indexes=(OWNER, NODE, label_index(POD, "app")),
        concrete=True,
        canonical=canonical,
        head_only=lambda gk: gk == LEASE,
        compact=compact,
    )


class Twin:
    """A store and what it must hold."""

    def __init__(self, store, model, history):
        self.store = store
        self.model = model
        self.history = history
        """Every commit so far: a head that never forks can repeat it."""


def found(model, gk, pick):
    return [obj for key, obj in sorted(model.items()) if key.gk == gk and pick(obj)]


def assert_equal(store, model):
    for gk in (POD, SET, LEASE, NODES):
        assert list(store.list(gk)) == found(model, gk, lambda obj: True)
        assert store.count(gk) == len(found(model, gk, lambda obj: True))
        assert store.namespaces(gk) == sorted({key.namespace for key in model if key.gk == gk})
        for uid in ("u1", "u2", "u3"):
            owned = found(model, gk, lambda obj, uid=uid: uid in OWNER.values(obj))
            assert list(store.find("owner", uid, gk)) == owned
    for host in ("h1", "h2"):
        assert list(store.find("node", host)) == found(model, POD, lambda obj, host=host: obj.node == host)
    for app in ("web", "db"):
        labelled = found(model, POD, lambda obj, app=app: obj.meta.value.get("labels") == {"app": app})
        assert list(store.find("label:app", app)) == labelled
    assert store.kinds() == sorted({key.gk for key in model})
    full = sum(obj.term for key, obj in model.items() if key.gk != LEASE) & MASK
    head_only = sum(obj.term for key, obj in model.items() if key.gk == LEASE) & MASK
    assert store.digest == (full, head_only)
    assert store.sum_canonical == sum(canonical(obj) for obj in model.values()) & MASK


class StoreEqualsDict(RuleBasedStateMachine):
    twins = Bundle("twins")

    def __init__(self):
        super().__init__()
        self.all = []
        self.bucket = sortedmap.BUCKET
        sortedmap.BUCKET = 3

    def teardown(self):
        for twin in self.all:
            head = Store(config())
            for key, old, new in twin.history:
                self.repeat(head, key, old, new)
            assert [obj.term for obj in head.objects()] == [obj.term for obj in twin.store.objects()]
            assert (head.digest, head.sum_canonical, head.rev) == (
                twin.store.digest,
                twin.store.sum_canonical,
                twin.store.rev,
            )
        sortedmap.BUCKET = self.bucket

    @staticmethod
    def repeat(head, key, old, new):
        event = head.commit(Commit(key, head.get(key), None if new is None else new.replace(rv=0)))
        assert (event.old is None) == (old is None)

    @rule(target=twins, compact=st.booleans())
    def new(self, compact):
        twin = Twin(Store(config(compact)), {}, [])
        self.all.append(twin)
        return twin

    @rule(target=twins, twin=twins)
    def fork(self, twin):
        other = Twin(twin.store.fork(), dict(twin.model), list(twin.history))
        self.all.append(other)
        return other

    @rule(twin=twins, gk=GKS, ns=NAMESPACES, names=st.lists(NAMES, max_size=6), uids=UIDS, app=APPS, host=HOSTS)
    def put(self, twin, gk, ns, names, uids, app, host):
        for name in names:
            key = Key(*gk, "" if gk == NODES else ns, name)
            labels = {"app": app} if app else None
            made = thing(gk, key.namespace, name, labels=labels, owners=uids, node=host if gk == POD else None)
            old = twin.model.get(key)
            event = twin.store.commit(Commit(key, old, made))
            assert event.new is made
            assert made.rv == twin.store.rev == len(twin.history) + 1
            twin.model[key] = made
            twin.history.append((key, old, made))

    @rule(twin=twins, gk=GKS, ns=NAMESPACES, names=st.lists(NAMES, max_size=6))
    def remove(self, twin, gk, ns, names):
        for name in names:
            key = Key(*gk, "" if gk == NODES else ns, name)
            old = twin.model.pop(key, None)
            assert twin.store.get(key) is old
            if old is None:
                assert twin.store.remove(key, twin.store.rev + 1) is None
            else:
                twin.store.commit(Commit(key, old, None))
                twin.history.append((key, old, None))

    @rule(twin=twins, other=twins, gk=GKS, ns=NAMESPACES, name=NAMES)
    def stale_commit(self, twin, other, gk, ns, name):
        """A commit made against another fork's version is taken only when the slot is the same."""
        key = Key(*gk, "" if gk == NODES else ns, name)
        old = other.store.get(key)
        made = thing(gk, key.namespace, name)
        same = twin.store.get(key) is old
        event = twin.store.commit(Commit(key, old, made))
        assert (event is not None) == same
        if same:
            twin.model[key] = made
            twin.history.append((key, old, made))

    @rule(twin=twins, gk=GKS, ns=NAMESPACES, name=NAMES, everywhere=st.booleans(), limit=st.integers(1, 5))
    def list(self, twin, gk, ns, name, everywhere, limit):
        """Pages of any size make up the whole list."""
        namespace = None if everywhere else ("" if gk == NODES else ns)
        whole = list(twin.store.list(gk, namespace))
        pages, after = [], None
        while True:
            page = [obj for obj, _ in zip(twin.store.list(gk, namespace, after), range(limit), strict=False)]
            if not page:
                break
            pages += page
            after = page[-1].key[2:]
        assert pages == whole
        behind = ("" if gk == NODES else ns, name)
        assert list(twin.store.list(gk, namespace, behind)) == [obj for obj in whole if obj.key[2:] > behind]

    @rule()
    def memory_gets_short(self):
        PARSED.clear()

    @invariant()
    def stores_equal_their_models(self):
        for twin in self.all:
            assert_equal(twin.store, twin.model)


StoreEqualsDict.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
TestStoreEqualsDict = StoreEqualsDict.TestCase
