"""Sets of fields, in the shape of managedFields' FieldsV1, hash-consed per subtree.

A `FieldSet` is a trie. Its edges are path elements in FieldsV1 text: `f:name` (a field or map key),
`k:{"name":"web"}` (an item of an associative list, by its keys) and `v:"x"` (an element of a set). A node is a
*member* when the path that ends there is itself in the set; every leaf is a member.

Equal subtrees are usually one object. What names an item that nobody named before (a pod's own address) would only
fill the tables: such a set, and every set it is part of, is *unshared*, and everything beside it is shared. The
algebra therefore tests identity first. The format is described by the Kubernetes API
reference (FieldsV1) and by structured-merge-diff's documentation.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final

from xxhash import xxh3_128_intdigest

from .value import EMPTY, Frozen

INTERN_LIMIT: Final = 1 << 16
"""Nodes in the hash-consing table before it is emptied: sharing is re-established from then on, and sets that
only one object uses cannot fill the memory for ever."""

MEMO_LIMIT: Final = 1 << 14
"""Remembered results of the algebra; a table is emptied when it is full."""

_table: dict[tuple[Any, ...], FieldSet] = {}
_names: dict[tuple[str, ...], tuple[str, ...]] = {}
_shapes: dict[tuple[Any, ...], FieldSet] = {}
"""Nodes by their items in the order they came: most are asked for again and again in the same order."""
_orders: dict[tuple[str, ...], tuple[tuple[str, ...], tuple[int, ...]]] = {}
"""Names in the order they came → the same sorted, and where each stood."""
_unions: dict[tuple[FieldSet, FieldSet], FieldSet] = {}


class FieldSet:
    """An immutable set of field paths. Build it with `node`; compare with `==`; combine with `|`, `-`, `&`."""

    __slots__ = ("_digest", "kids", "member", "names", "shared")

    names: tuple[str, ...]
    """Path elements below this node, sorted."""
    kids: tuple[FieldSet, ...]
    """The subtree of each element of `names`, in the same order."""
    member: bool
    """Whether the path that ends at this node is in the set."""
    shared: bool
    """Whether an equal set made later is mostly this very object."""
    _digest: int

    def __init__(self, names: tuple[str, ...], kids: tuple[FieldSet, ...], member: bool, shared: bool = False) -> None:
        self.names = names
        self.kids = kids
        self.member = member
        self.shared = shared
        self._digest = -1

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, FieldSet)
            and self.member == other.member
            and self.names == other.names
            and all(a is b or a == b for a, b in zip(self.kids, other.kids, strict=True))
        )

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        return self.member or bool(self.names)

    def __or__(self, other: FieldSet) -> FieldSet:
        return union(self, other)

    def __sub__(self, other: FieldSet) -> FieldSet:
        return difference(self, other)

    def __and__(self, other: FieldSet) -> FieldSet:
        return intersection(self, other)

    def child(self, name: str) -> FieldSet:
        """The subtree below a path element; the empty set when there is none."""
        names = self.names
        return self.kids[names.index(name)] if name in names else NOTHING

    def paths(self) -> list[tuple[str, ...]]:
        """All member paths, each a tuple of path elements, in sorted order."""
        out: list[tuple[str, ...]] = []
        _collect(self, (), out)
        return out

    def to_json(self) -> Frozen:
        """The FieldsV1 form: `{"f:spec": {"f:replicas": {}}}`; `.` marks an inner node that is a member."""
        if not self.names:
            return EMPTY
        out: dict[str, Any] = {".": EMPTY} if self.member else {}
        for name, kid in zip(self.names, self.kids, strict=True):
            out[name] = kid.to_json()
        return Frozen(out)

    def digest(self) -> int:
        """128 bits that depend only on the set itself; cached."""
        value = self._digest
        if value < 0:
            parts = [b"." if self.member else b"-"]
            for name, kid in zip(self.names, self.kids, strict=True):
                parts.append(name.encode())
                parts.append(kid.digest().to_bytes(16, "little"))
            value = self._digest = xxh3_128_intdigest(b"\0".join(parts))
        return value

    def __repr__(self) -> str:
        return f"FieldSet({['/'.join(path) for path in self.paths()]})"


def _collect(node: FieldSet, prefix: tuple[str, ...], out: list[tuple[str, ...]]) -> None:
    if node.member:
        out.append(prefix)
    for name, kid in zip(node.names, node.kids, strict=True):
        _collect(kid, (*prefix, name), out)


class Deferred(FieldSet):
    """A set that is made when somebody looks at it: what only one object has, and mostly nobody asks for."""

    __slots__ = ("_args", "_made", "_make")

    def __init__(self, make: Callable[..., FieldSet], *args: Any) -> None:
        self._make = make
        self._args = args
        self._made: FieldSet | None = None
        self.shared = False

    def made(self) -> FieldSet:
        """The set itself."""
        made = self._made
        if made is None:
            made = self._made = self._make(*self._args)
            self._args = ()
        return made

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        """Path elements below this node, sorted."""
        return self.made().names

    @property
    def kids(self) -> tuple[FieldSet, ...]:  # type: ignore[override]
        """The subtree of each element of `names`, in the same order."""
        return self.made().kids

    @property
    def member(self) -> bool:  # type: ignore[override]
        """Whether the path that ends at this node is in the set."""
        return self.made().member

    def digest(self) -> int:
        """128 bits that depend only on the set itself."""
        return self.made().digest()

    __hash__ = object.__hash__


NOTHING: Final = FieldSet((), (), False, True)
LEAF: Final = FieldSet((), (), True, True)


def node(items: dict[str, FieldSet], member: bool = False) -> FieldSet:
    """The set with the given subtrees; shared with an equal one where known. The subtrees must not be empty."""
    if not items:
        return LEAF if member else NOTHING
    return _node(tuple(items), tuple(items.values()), member)


def unshared(items: dict[str, FieldSet], member: bool = False) -> FieldSet:
    """`node` for a set that will hardly be made again: no table hears of it."""
    names = tuple(sorted(items))
    return FieldSet(names, tuple([items[name] for name in names]), member)


def share(found: FieldSet) -> FieldSet:
    """The shared set that is equal to this one: for a set that many objects will have."""
    if found.shared:
        return found
    return _intern(found.names, tuple([share(kid) for kid in found.kids]), found.member)


def _node(given: tuple[str, ...], kids: tuple[FieldSet, ...], member: bool) -> FieldSet:
    """The set of these names, in any order, with these subtrees."""
    shape = (given, kids, member)
    found = _shapes.get(shape)
    if found is not None:
        return found
    order = _orders.get(given)
    if order is None:
        if len(_orders) >= MEMO_LIMIT:
            _orders.clear()
        places = sorted(range(len(given)), key=given.__getitem__)
        order = _orders[given] = (tuple([given[place] for place in places]), tuple(places))
    names, places_of = order
    sorted_kids = tuple([kids[place] for place in places_of])
    for kid in kids:
        if not kid.shared:
            return FieldSet(names, sorted_kids, member)
    if len(_shapes) >= MEMO_LIMIT:
        _shapes.clear()
    found = _shapes[shape] = _intern(names, sorted_kids, member)
    return found


def _intern(names: tuple[str, ...], kids: tuple[FieldSet, ...], member: bool) -> FieldSet:
    for kid in kids:
        if not kid.shared:
            return FieldSet(names, kids, member)
    shape = (names, kids, member)
    found = _table.get(shape)
    if found is not None:
        return found
    if len(_table) >= INTERN_LIMIT:
        _table.clear()
        _names.clear()
    names = _names.setdefault(names, names)
    made = _table[(names, kids, member)] = FieldSet(names, kids, member, True)
    return made


FEW: Final = 32
"""Names that are searched one by one; of more, a hash is made first: a list of tens of thousands of items must not cost
their square."""
EMPTY_PLACES: Final[dict[str, int]] = {}


def union(a: FieldSet, b: FieldSet) -> FieldSet:
    """Paths in either set."""
    if a is b or not (b.names or b.member):
        return a
    if not (a.names or a.member):
        return b
    if not b.names:
        return a if a.member else _intern(a.names, a.kids, True)
    if not (a.shared and b.shared):
        return _joined(a, b)
    found = _unions.get((a, b))
    if found is None:
        if len(_unions) >= MEMO_LIMIT:
            _unions.clear()
        found = _unions[(a, b)] = _joined(a, b)
    return found


def _joined(a: FieldSet, b: FieldSet) -> FieldSet:
    """The union of two sets that both have something, `b`'s names mostly being among `a`'s."""
    member = a.member or b.member
    names, kids = a.names, list(a.kids)
    extra: list[str] = []
    changed = member is not a.member
    many = len(names) > FEW
    places = {name: at for at, name in enumerate(names)} if many else EMPTY_PLACES
    for name, kid in zip(b.names, b.kids, strict=True):
        if name in (places if many else names):
            at = places[name] if many else names.index(name)
            both = union(kids[at], kid)
            if both is not kids[at]:
                kids[at] = both
                changed = True
        else:
            extra.append(name)
            kids.append(kid)
    if extra:
        return _node((*names, *extra), tuple(kids), member)
    return _intern(names, tuple(kids), member) if changed else a


def covers(a: FieldSet, b: FieldSet) -> bool:
    """Whether every path of `b` is in `a`."""
    if a is b:
        return True
    if b.member and not a.member:
        return False
    if a.names is b.names:
        return all(x is y or covers(x, y) for x, y in zip(a.kids, b.kids, strict=True))
    have = dict(zip(a.names, a.kids, strict=True))
    for name, kid in zip(b.names, b.kids, strict=True):
        mine = have.get(name)
        if mine is None or not (mine is kid or covers(mine, kid)):
            return False
    return True


def difference(a: FieldSet, b: FieldSet) -> FieldSet:
    """Paths in `a` and not in `b`. Removing an inner path keeps the paths below it, as in FieldsV1."""
    if not (b.names or b.member) or not (a.names or a.member):
        return a
    if a is b:
        return NOTHING
    member = a.member and not b.member
    mine = a.names
    known: Collection[str] = mine if len(mine) <= FEW else frozenset(mine)
    if not mine or not [name for name in b.names if name in known]:
        return a if member == a.member else _intern_or_leaf(a.names, a.kids, member)
    taken = dict(zip(b.names, b.kids, strict=True))
    changed = member != a.member
    kept: dict[str, FieldSet] = {}
    for name, kid in zip(a.names, a.kids, strict=True):
        other = taken.get(name)
        rest = kid if other is None else difference(kid, other)
        if rest is not kid:
            changed = True
        if rest.member or rest.names:
            kept[name] = rest
    return node(kept, member) if changed else a


def intersection(a: FieldSet, b: FieldSet) -> FieldSet:
    """Paths in both sets."""
    if a is b:
        return a
    kept: dict[str, FieldSet] = {}
    if a.names and b.names:
        other = dict(zip(b.names, b.kids, strict=True))
        for name, kid in zip(a.names, a.kids, strict=True):
            twin = other.get(name)
            if twin is not None:
                both = intersection(kid, twin)
                if both.member or both.names:
                    kept[name] = both
    return node(kept, a.member and b.member)


def _intern_or_leaf(names: tuple[str, ...], kids: tuple[FieldSet, ...], member: bool) -> FieldSet:
    if not names:
        return LEAF if member else NOTHING
    return _intern(names, kids, member)


def from_json(value: Any) -> FieldSet:
    """Parses FieldsV1 (`{"f:spec": {...}}`). Raises `ValueError` naming what is wrong."""
    if not isinstance(value, dict):
        raise ValueError(f"FieldsV1 must be an object, not {type(value).__name__}")
    kids: dict[str, FieldSet] = {}
    member = not value
    for name, below in value.items():
        if name == ".":
            member = True
        elif isinstance(name, str) and name[:2] in ("f:", "k:", "v:", "i:"):
            kids[name] = from_json(below)
        else:
            raise ValueError(f"FieldsV1 path element {name!r} must start with f:, k:, v: or i:")
    return node(kids, member)
