"""The store: every object of one world, persistent, indexed and forkable.

`(group, kind) → namespace → sorted buckets of name → Object`. A fork is O(number of kinds) and shares everything;
afterwards each side copies the one bucket a write touches. The single head of simulate and run never forks while it
writes, so it changes its buckets in place: the results are the same (law: the store equals a naive dict).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, Protocol

from .effect import Commit, Event, ListQuery
from .object import MASK, PARSED, Key, Object
from .sortedmap import ANYTHING, OTHER, SortedMap

GK = tuple[str, str]


class Index(NamedTuple):
    """A declared index. `values(obj)` gives the texts under which an object is found; `reads` names the parts it
    depends on ("meta", "spec", "rest", "status", "node"), so that a write to another part costs the index nothing."""

    name: str
    gk: GK | None
    """The kind it covers; None for all kinds."""
    reads: tuple[str, ...]
    values: Callable[[Object], tuple[str, ...]]


ADOPTABLE: Final = frozenset({("", "Pod"), ("apps", "ReplicaSet")})
"""Kinds whose objects without a controller are found under the owner "": controllers look for orphans to adopt."""


FOREGROUND: Final = "foregroundDeletion"
"""The finalizer of an object that goes after its dependents."""
EVERY: Final[GK] = ("*", "*")
"""In a query narrowed by an index: objects of every kind."""


NAMED: Final = "name"
"""In a query, in the place of an index: the objects of one name, whatever their namespace."""


def waits_for(uid: str) -> str:
    """Under this value of the index "owner" an object is found that waits for its dependents to go, by its own uid:
    so that the end of one of these wakes it, and nothing is looked up for all the others."""
    return f"waiting {uid}"


def _owner_uids(obj: Object) -> tuple[str, ...]:
    meta = obj.meta.value
    owners = meta.get("ownerReferences") or ()
    uids = tuple([owner["uid"] for owner in owners])
    if "finalizers" in meta and FOREGROUND in meta["finalizers"]:
        uids = (*uids, waits_for(meta["uid"]))
    for owner in owners:
        if owner.get("controller"):
            return uids
    return (*uids, "") if (obj.key.group, obj.key.kind) in ADOPTABLE else uids


def _node_name(obj: Object) -> tuple[str, ...]:
    return (obj.node,) if obj.node else ()


def _namespace(obj: Object) -> tuple[str, ...]:
    return (obj.key.namespace,)


def used_address(address: str) -> str:
    """Under this value of the index "addresses" a Service is found that holds an address."""
    return f"ip {address}"


def used_port(number: int) -> str:
    """Under this value of the index "addresses" a Service is found that holds a node port."""
    return f"port {number}"


def _addresses(obj: Object) -> tuple[str, ...]:
    spec = obj.spec_value
    ports = [port.get("nodePort") for port in spec.get("ports") or ()]
    held = {used_port(number) for number in [*ports, spec.get("healthCheckNodePort")] if number}
    return (*(used_address(found) for found in spec.get("clusterIPs") or () if found != "None"), *sorted(held))


BUDGETS: Final = Index("budgets", ("policy", "PodDisruptionBudget"), (), _namespace)
"""The budgets of a namespace: a pod's event finds those that may be about it, and costs nothing where there are
none."""
NODES: Final = Index("nodes", ("", "Node"), (), lambda obj: (obj.key.name,))
"""Nodes by name: what a controller needs to know of a node decides whether a pod's event concerns it."""
QUOTAS: Final = Index("quotas", ("", "ResourceQuota"), (), _namespace)
"""The quotas of a namespace, for the same reason."""
ADDRESSES: Final = Index("addresses", ("", "Service"), ("spec",), _addresses)
"""Services by the addresses and node ports they hold, so that the next one gets others."""
SERVICES: Final = Index("services", ("", "Service"), (), _namespace)
"""The services of a namespace: a pod's event finds those that may choose it."""
REPLICATIONS: Final = Index("replications", ("", "ReplicationController"), (), _namespace)
"""The ReplicationControllers of a namespace: a pod's event costs one look where there are none."""
STATEFUL: Final = Index("stateful", ("apps", "StatefulSet"), (), _namespace)
"""The StatefulSets of a namespace: a claim's event finds those it may be of."""
OWNER: Final = Index("owner", None, ("meta",), _owner_uids)
NODE: Final = Index("node", ("", "Pod"), ("node",), _node_name)


def label_index(gk: GK, label: str) -> Index:
    """An index on the value of one label of one kind."""

    def values(obj: Object) -> tuple[str, ...]:
        labels = obj.meta.value.get("labels")
        value = labels.get(label) if labels else None
        return () if value is None else (value,)

    return Index(f"label:{label}", gk, ("meta",), values)


class StoreConfig:
    """What a store keeps beside its objects. Shared by all forks; never changed after the first write."""

    __slots__ = ("canonical", "compact", "concrete", "for_kind", "head_only", "indexes")

    def __init__(
        self,
        indexes: tuple[Index, ...] = (OWNER, NODE, BUDGETS, NODES, QUOTAS, ADDRESSES, SERVICES, REPLICATIONS, STATEFUL),
        concrete: bool = False,
        canonical: Callable[[Object], int] | None = None,
        head_only: Callable[[GK], bool] = lambda gk: False,
        compact: bool = False,
    ) -> None:
        self.indexes = indexes
        self.concrete = concrete
        """Keep the running sum of concrete digests (law J1: the journal carries it)."""
        self.canonical = canonical
        """Keep the running sum of this canonical digest (check: the fingerprint)."""
        self.head_only = head_only
        """Kinds whose history is not kept; their concrete sum is kept apart."""
        self.compact = compact
        """Let the parsed values of stored sections go when memory is short (simulate and run)."""
        self.for_kind: dict[tuple[GK, bool], tuple[Index, ...]] = {}

    def indexes_of(self, gk: GK, same: bool = False) -> tuple[Index, ...]:
        """The indexes that cover a kind; with `same`, those that a write which leaves metadata and nodeName as they
        are can concern: mostly none."""
        found = self.for_kind.get((gk, same))
        if found is None:
            covering = [index for index in self.indexes if index.gk is None or index.gk == gk]
            if same:
                covering = [index for index in covering if not set(index.reads) <= {"meta", "node"}]
            found = self.for_kind[(gk, same)] = tuple(covering)
        return found


class Finder(Protocol):
    """Where objects are found by a declared index: a store, or what a controller's caches show."""

    def find(self, index: str, value: str, gk: GK | None = None) -> Iterator[Object]:
        """See `Store.find`."""


class _Kind:
    """All objects of one kind."""

    __slots__ = ("changes", "count", "derived", "namespaces", "owner")

    def __init__(self, owner: object, namespaces: dict[str, SortedMap[str, Object]], count: int) -> None:
        self.owner = owner
        self.namespaces = namespaces
        self.count = count
        self.changes = 0
        """How often it may have changed since it was made."""
        self.derived: Any = None
        """What somebody made of all these objects (`Store.derived`), until one of them is written."""


class Store:
    """See the module's text. Reads never fail: what is not there is None or an empty iterator."""

    __slots__ = (
        "_indexes",
        "_kinds",
        "_owner",
        "config",
        "rev",
        "sum_canonical",
        "sum_full",
        "sum_head_only",
        "times",
    )

    def __init__(self, config: StoreConfig | None = None) -> None:
        self.config = config or StoreConfig()
        self.rev = 0
        """The revision of the last write."""
        self.sum_full = 0
        self.sum_head_only = 0
        self.sum_canonical = 0
        self.times: Any = None
        """What `kernel.fingerprint` knows of the times in it; forgotten with every write."""
        self._owner: object = object()
        self._kinds: dict[GK, _Kind] = {}
        self._indexes: dict[str, SortedMap[tuple[str, Key], None]] = {}

    def fork(self) -> Store:
        """A second store with the same contents. Neither side sees what the other writes from now on."""
        other = Store.__new__(Store)
        other.config = self.config
        other.rev = self.rev
        other.sum_full = self.sum_full
        other.sum_head_only = self.sum_head_only
        other.sum_canonical = self.sum_canonical
        other.times = self.times
        other._owner = object()
        other._kinds = self._kinds.copy()
        other._indexes = self._indexes.copy()
        self._owner = object()
        return other

    # -- reads ---------------------------------------------------------------------------------------------

    def get(self, key: Key) -> Object | None:
        """The object in a slot."""
        kind = self._kinds.get((key.group, key.kind))
        if kind is None:
            return None
        names = kind.namespaces.get(key.namespace)
        return None if names is None else names.get(key.name)

    def count(self, gk: GK) -> int:
        """How many objects of a kind there are."""
        kind = self._kinds.get(gk)
        return 0 if kind is None else kind.count

    def lacks(self, gks: frozenset[GK]) -> bool:
        """Whether there never was an object of any of these kinds: a fast no, where `count` tells the rest."""
        return self._kinds.keys().isdisjoint(gks)

    def kinds(self) -> list[GK]:
        """Kinds that have objects, sorted."""
        return sorted([gk for gk, kind in self._kinds.items() if kind.count])

    def mark(self, gk: GK) -> tuple[object, int]:
        """What tells the contents of one kind apart: while two marks are equal, so are the contents. Hold it only for
        comparing; it keeps what it marks alive."""
        kind = self._kinds.get(gk)
        return (None, 0) if kind is None else (kind, kind.changes)

    def namespaces(self, gk: GK) -> list[str]:
        """Namespaces in which a kind has objects, sorted."""
        kind = self._kinds.get(gk)
        return [] if kind is None else sorted(kind.namespaces)

    def list(self, gk: GK, namespace: str | None = None, after: tuple[str, str] | None = None) -> Iterator[Object]:
        """Objects of a kind in (namespace, name) order; `after` continues behind that (namespace, name)."""
        kind = self._kinds.get(gk)
        if kind is None:
            return
        for ns in sorted(kind.namespaces) if namespace is None else (namespace,):
            names = kind.namespaces.get(ns)
            if names is None or (after is not None and ns < after[0]):
                continue
            if after is not None and ns == after[0]:
                for _, obj in names.items(after[1], after=True):
                    yield obj
            else:
                yield from names.values()

    def derived(self, gk: GK, make: Callable[[Iterator[Object]], Any]) -> Any:
        """What `make` gives of a kind's objects, kept until one of them is written; None when there are none.

        A kind has one such function: forks that share its objects share what was made of them."""
        kind = self._kinds.get(gk)
        if kind is None or not kind.count:
            return None
        found = kind.derived
        if found is None:
            found = kind.derived = make(self.list(gk))
        return found

    def count_after(self, gk: GK, namespace: str | None, after: tuple[str, str]) -> int:
        """How many objects `list` would give with the same arguments, without giving them."""
        kind = self._kinds.get(gk)
        if kind is None:
            return 0
        found = 0
        for ns, names in kind.namespaces.items():
            if ns < after[0] or (namespace is not None and ns != namespace):
                continue
            found += names.count_after(after[1]) if ns == after[0] else names.size
        return found

    def find(self, index: str, value: str, gk: GK | None = None) -> Iterator[Object]:
        """Objects whose declared index holds `value`, in key order; costs its result."""
        entries = self._indexes.get(index)
        if entries is None:
            return
        start = (value, Key(*gk, "", "")) if gk else (value, Key("", "", "", ""))
        for (found, key), _ in entries.items(start):
            if found != value or (gk is not None and (key.group, key.kind) != gk):
                return
            obj = self.get(key)
            if obj is not None:
                yield obj

    def query(self, query: ListQuery, after: tuple[str, str] | None = None) -> Iterator[Object]:
        """The objects a list asks for, in (namespace, name) order, lazily; `after` continues a page."""
        if query.by == NAMED:
            found: Iterator[Object] = self._named(query.gk, query.value, query.namespace, after)
        elif query.by:
            found = (
                obj
                for obj in self.find(query.by, query.value, None if query.gk == EVERY else query.gk)
                if (query.namespace is None or obj.key.namespace == query.namespace)
                and (after is None or (obj.key.namespace, obj.key.name) > after)
            )
        else:
            found = self.list(query.gk, query.namespace, after)
        return found if query.matches is None else filter(query.matches, found)

    def _named(self, gk: GK, name: str, namespace: str | None, after: tuple[str, str] | None) -> Iterator[Object]:
        """The objects of one name, in one namespace or in every one: costs a look into each."""
        kind = self._kinds.get(gk)
        if kind is None:
            return
        for ns in sorted(kind.namespaces) if namespace is None else (namespace,):
            names = kind.namespaces.get(ns)
            obj = None if names is None else names.get(name)
            if obj is not None and (after is None or (ns, name) > after):
                yield obj

    def objects(self) -> Iterator[Object]:
        """Every object, in key order of kinds, then namespace and name."""
        for gk in self.kinds():
            yield from self.list(gk)

    @property
    def digest(self) -> tuple[int, int]:
        """Concrete digests: kinds with full history, and head-only kinds. Kept running when configured so."""
        if self.config.concrete:
            return self.sum_full, self.sum_head_only
        full = head_only = 0
        for obj in self.objects():
            if self.config.head_only(obj.key.gk):
                head_only += obj.term
            else:
                full += obj.term
        return full & MASK, head_only & MASK

    # -- writes --------------------------------------------------------------------------------------------

    def commit(self, commit: Commit) -> Event | None:
        """Carries out a commit at the next revision; None when the slot is no longer as `begin` saw it."""
        key, old, new = commit.key, commit.old, commit.new
        rev = self.rev + 1
        if new is None:
            if self.get(key) is not old:
                return None
            self.remove(key, rev)
        else:
            stored = new
            if new.rv:  # a memoised version: shared by several paths, so it gets its revision in a copy
                stored = new.at(rev)
            else:
                new.rv = rev
                new._term = -1  # in case somebody asked for it before
            if self.put(stored, old) is OTHER:
                if stored is new:
                    new.rv = 0
                return None
            new = stored
        self.rev = rev
        return Event(rev, key, old, new)

    def put(self, obj: Object, expected: Any = ANYTHING) -> Any:
        """Stores a version in its slot and moves `rev` to its revision; returns the version it replaces, or None.
        When that is not the `expected` one, nothing is stored and `OTHER` is returned."""
        key = obj.key
        kind = self._writable((key.group, key.kind))
        names = kind.namespaces.get(key.namespace)
        if names is None:
            names = SortedMap(self._owner)
        else:
            names = names.writable(self._owner)
        kind.namespaces[key.namespace] = names
        old: Any = names.put(key.name, obj, expected)
        if old is None:
            kind.count += 1
        elif old is OTHER:
            if not names.size:
                del kind.namespaces[key.namespace]
            return OTHER
        self.rev = max(self.rev, obj.rv)
        self._account(old, obj)
        if self.config.compact:
            section = obj.status
            if section is not None and section._value is not None and (old is None or section is not old.status):
                PARSED.admit(section)
            section = obj.spec
            if section is not None and section._value is not None and (old is None or section is not old.spec):
                PARSED.admit(section)
            section = obj.rest
            if section is not None and section._value is not None and (old is None or section is not old.rest):
                PARSED.admit(section)
        return old

    def remove(self, key: Key, rev: int) -> Object | None:
        """Empties a slot at revision `rev`; returns the version it held."""
        kind = self._writable((key.group, key.kind))
        names = kind.namespaces.get(key.namespace)
        if names is None:
            return None
        names = kind.namespaces[key.namespace] = names.writable(self._owner)
        old: Object | None = names.pop(key.name)
        if old is None:
            return None
        kind.count -= 1
        if not names.size:
            del kind.namespaces[key.namespace]
        self.rev = max(self.rev, rev)
        self._account(old, None)
        return old

    def _writable(self, gk: GK) -> _Kind:
        kind = self._kinds.get(gk)
        if kind is None:
            kind = self._kinds[gk] = _Kind(self._owner, {}, 0)
        elif kind.owner is not self._owner:
            kind = self._kinds[gk] = _Kind(self._owner, kind.namespaces.copy(), kind.count)
        kind.changes += 1
        kind.derived = None
        return kind

    def _account(self, old: Object | None, new: Object | None) -> None:
        self.times = None
        some: Any = new if old is None else old
        gk = (some.key.group, some.key.kind)
        same = old is not None and new is not None and old.meta is new.meta and old.node == new.node
        for index in self.config.indexes_of(gk, same):
            if old is not None and new is not None:
                for part in index.reads:
                    if getattr(old, part) is not getattr(new, part):
                        break
                else:
                    continue
            before = () if old is None else index.values(old)
            after = () if new is None else index.values(new)
            if before != after:
                self._reindex(index.name, some.key, before, after)
        config = self.config
        if config.canonical is not None:
            change = (0 if new is None else config.canonical(new)) - (0 if old is None else config.canonical(old))
            self.sum_canonical = (self.sum_canonical + change) & MASK
        if config.concrete:
            change = (0 if new is None else new.term) - (0 if old is None else old.term)
            if config.head_only(gk):
                self.sum_head_only = (self.sum_head_only + change) & MASK
            else:
                self.sum_full = (self.sum_full + change) & MASK

    def _reindex(self, name: str, key: Key, before: tuple[str, ...], after: tuple[str, ...]) -> None:
        entries = self._indexes.get(name)
        entries = self._indexes[name] = SortedMap(self._owner) if entries is None else entries.writable(self._owner)
        for value in before:
            if value not in after:
                entries.pop((value, key))
        for value in after:
            if value not in before:
                entries.put((value, key), None)
