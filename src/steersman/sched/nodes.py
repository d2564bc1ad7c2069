"""The scheduler's picture of the nodes: retained NumPy columns, one row a node, kept up event by event.

Rows are dense: removing a node moves the last row into its place, and the two change logs say which rows are new.
All amounts are exact int64 (units: `resources.py`), so adding and taking away never drifts, and a table kept up by
events equals one built afresh (law: incremental = rebuilt).
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from steersman.sched.resources import CPU, MEMORY, PODS, STORAGE, HostPort, Resources, allocatable

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Rows = slice | Ints
"""Which rows a column function works on: `slice(0, table.size)` for all."""

PodKey = tuple[str, str]
"""(namespace, name)."""
Taints = tuple[tuple[str, str, str], ...]
"""(key, value, effect) of each taint of a node, in the order of the object."""

FIRST_CAPACITY = 64
"""Rows made room for at first; doubled when full, so that adding n nodes copies O(n) rows in all."""
LOG_SLACK = 1024
"""A change log keeps this many entries and one for each row; who is further behind looks at every row anew."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Load:
    """What one pod takes on its node."""

    resources: Resources
    ports: tuple[HostPort, ...]


class ChangeLog:
    """Rows that changed, in order. A reader keeps the position it has read up to."""

    __slots__ = ("_base", "_rows")

    def __init__(self) -> None:
        self._base = 0
        self._rows: list[int] = []

    @property
    def position(self) -> int:
        return self._base + len(self._rows)

    def add(self, row: int, size: int) -> None:
        if len(self._rows) > size + LOG_SLACK:
            self._base += len(self._rows)
            self._rows.clear()
        self._rows.append(row)

    def since(self, position: int) -> list[int] | None:
        """Rows changed since `position`, perhaps with repeats; None when that is no longer known."""
        return self._rows[position - self._base :] if position >= self._base else None

    def copy(self) -> "ChangeLog":
        log = ChangeLog()
        log._base, log._rows = self._base, self._rows.copy()
        return log


class Interned:
    """Small numbers for values that many nodes share (label values, taint lists). Numbers are never reused."""

    __slots__ = ("number", "values")

    def __init__(self) -> None:
        self.number: dict[Any, int] = {}
        self.values: list[Any] = []

    def __call__(self, value: Any) -> int:
        number = self.number.get(value)
        if number is None:
            number = self.number[value] = len(self.values)
            self.values.append(value)
        return number

    def copy(self) -> "Interned":
        other = Interned()
        other.number, other.values = self.number.copy(), self.values.copy()
        return other


class NodeTable:
    """Nodes and the pods on them.

    Pods may be booked on a node that is not (yet, or any more) there: they count as soon as it appears.
    Columns are valid for rows [0, size). `allocatable` and `requested` have one line a resource, numbered by
    `resource_row`; `nonzero` has the two lines cpu and memory.
    """

    def __init__(self) -> None:
        self.size = 0
        self.names: list[str] = []
        self.row_of: dict[str, int] = {}
        self.resource_row: dict[str, int] = {CPU: 0, MEMORY: 1, STORAGE: 2}
        self.allocatable = np.zeros((3, FIRST_CAPACITY), np.int64)
        self.requested = np.zeros((3, FIRST_CAPACITY), np.int64)
        self.nonzero = np.zeros((2, FIRST_CAPACITY), np.int64)
        self.pods_allowed = np.zeros(FIRST_CAPACITY, np.int64)
        self.pods = np.zeros(FIRST_CAPACITY, np.int64)
        self.unschedulable = np.zeros(FIRST_CAPACITY, np.bool_)
        self.taint_class = np.zeros(FIRST_CAPACITY, np.int64)
        self.taints = Interned()
        self.labels: list[Mapping[str, str]] = []
        self.node_changes, self.load_changes = ChangeLog(), ChangeLog()
        self._facts: list[tuple[Any, ...]] = []
        self._ordered: list[str] = []
        self._rank: Ints | None = None
        self._booked: dict[PodKey, tuple[str, Load]] = {}
        self._assumed: set[PodKey] = set()
        self._on: dict[str, dict[PodKey, Load]] = {}
        self._port_users: dict[tuple[str, int], dict[str, dict[str, int]]] = {}

    # Nodes

    @property
    def capacity(self) -> int:
        return self.pods.shape[0]

    @property
    def rank(self) -> Ints:
        """Column: position of the node in the order of names. This is the node order in which ties are broken."""
        if self._rank is None:
            rank = np.empty(self.size, np.int64)
            rank[[self.row_of[name] for name in self._ordered]] = np.arange(self.size)
            self._rank = rank
        return self._rank

    def upsert(self, node: Mapping[str, Any]) -> bool:
        """Add a node or take over its new version; true if anything that matters to scheduling changed.

        Raises ValueError, naming the node, for an unreadable quantity.
        """
        name = node["metadata"]["name"]
        facts = _node_facts(node)
        row = self.row_of.get(name)
        if row is None:
            row = self._add_row(name)
        elif self._facts[row] == facts:
            return False
        self._facts[row] = facts
        amounts, labels, taints, unschedulable = facts
        self.allocatable[:, row] = 0
        for resource, amount in amounts:
            if resource != PODS:
                line = self._resource(resource)  # first: it may give the table more lines
                self.allocatable[line, row] = amount
        self.pods_allowed[row] = dict(amounts).get(PODS, 0)
        self.unschedulable[row] = unschedulable
        self.taint_class[row] = self.taints(taints)
        self.labels[row] = dict(labels)
        self.node_changes.add(row, self.size)
        return True

    def delete(self, name: str) -> bool:
        """Forget a node. Pods booked on it stay booked under its name."""
        row = self.row_of.pop(name, None)
        if row is None:
            return False
        last = self.size - 1
        if row != last:
            for column in self._columns():
                column[..., row] = column[..., last]
            moved = self.names[last]
            self.names[row], self.labels[row], self._facts[row] = moved, self.labels[last], self._facts[last]
            self.row_of[moved] = row
            self.node_changes.add(row, last)
        for column in (self.requested, self.nonzero, self.pods):
            column[..., last] = 0
        self.names.pop()
        self.labels.pop()
        self._facts.pop()
        self.size = last
        del self._ordered[bisect_left(self._ordered, name)]
        self._rank = None
        return True

    def pod_keys(self, name: str) -> tuple[PodKey, ...]:
        return tuple(sorted(self._on.get(name, ())))

    # Pods

    def assume(self, key: PodKey, name: str, load: Load) -> None:
        """Book a pod on the node chosen for it, before the write of that choice has been seen."""
        self._book(key, name, load)
        self._assumed.add(key)

    def confirm(self, key: PodKey, name: str, load: Load) -> bool:
        """Book a pod seen on a node; true if that freed anything somewhere (it moved, or asks for less)."""
        self._assumed.discard(key)
        before = self._booked.get(key)
        if before == (name, load):
            return False
        freed = before is not None and self.forget(key)
        self._book(key, name, load)
        return freed

    def forget(self, key: PodKey) -> bool:
        """Take a pod off its node; true if it was on one."""
        self._assumed.discard(key)
        before = self._booked.pop(key, None)
        if before is None:
            return False
        name, load = before
        del self._on[name][key]
        if not self._on[name]:
            del self._on[name]
        self._use_ports(name, load, -1)
        if (row := self.row_of.get(name)) is not None:
            self._count(row, load, -1)
        return True

    def is_assumed(self, key: PodKey) -> bool:
        return key in self._assumed

    def port_users(self, protocol: str, port: int) -> Iterator[tuple[int, dict[str, int]]]:
        """Rows of the nodes where this host port is taken, with the addresses it is taken at."""
        for name, addresses in self._port_users.get((protocol, port), {}).items():
            if (row := self.row_of.get(name)) is not None:
                yield row, addresses

    # Whole

    def state(self) -> tuple[Any, ...]:
        """Canonical contents, equal for equal clusters whatever the history: (nodes by name, pods by key)."""
        nodes = []
        for name in self._ordered:
            row = self.row_of[name]
            used = tuple(
                (resource, int(self.requested[line, row]))
                for resource, line in sorted(self.resource_row.items())
                if self.requested[line, row]
            )
            nonzero = (int(self.nonzero[0, row]), int(self.nonzero[1, row]))
            nodes.append((name, self._facts[row], used, nonzero, int(self.pods[row])))
        pods = tuple((key, *self._booked[key], key in self._assumed) for key in sorted(self._booked))
        return tuple(nodes), pods

    def copy(self) -> "NodeTable":
        """An independent table with the same contents; O(nodes + pods)."""
        other = NodeTable.__new__(NodeTable)
        for attribute, value in vars(self).items():
            setattr(other, attribute, _copied(value))
        return other

    def _columns(self) -> tuple[NDArray[Any], ...]:
        return (
            self.allocatable,
            self.requested,
            self.nonzero,
            self.pods_allowed,
            self.pods,
            self.unschedulable,
            self.taint_class,
        )

    def _add_row(self, name: str) -> int:
        row = self.size
        if row == self.capacity:
            self._widen(lambda column: np.concatenate([column, np.zeros_like(column)], axis=-1))
        self.size += 1
        self.names.append(name)
        self.labels.append({})
        self._facts.append(())
        self.row_of[name] = row
        insort(self._ordered, name)
        self._rank = None
        for load in self._on.get(name, {}).values():
            self._count(row, load, +1)
        return row

    def _widen(self, change: Callable[[NDArray[Any]], NDArray[Any]]) -> None:
        self.allocatable, self.requested, self.nonzero = map(change, (self.allocatable, self.requested, self.nonzero))
        self.pods_allowed, self.pods = change(self.pods_allowed), change(self.pods)
        self.unschedulable, self.taint_class = change(self.unschedulable), change(self.taint_class)

    def _resource(self, resource: str) -> int:
        line = self.resource_row.get(resource)
        if line is None:
            line = self.resource_row[resource] = len(self.resource_row)
            empty = np.zeros((1, self.capacity), np.int64)
            self.allocatable = np.concatenate([self.allocatable, empty])
            self.requested = np.concatenate([self.requested, empty])
        return line

    def _book(self, key: PodKey, name: str, load: Load) -> None:
        assert key not in self._booked, f"pod {key} is already booked"
        self._booked[key] = (name, load)
        self._on.setdefault(name, {})[key] = load
        self._use_ports(name, load, +1)
        if (row := self.row_of.get(name)) is not None:
            self._count(row, load, +1)

    def _count(self, row: int, load: Load, sign: int) -> None:
        for resource, amount in load.resources.amounts:
            line = self._resource(resource)
            self.requested[line, row] += sign * amount
        cpu, memory = load.resources.counted
        self.nonzero[0, row] += sign * cpu
        self.nonzero[1, row] += sign * memory
        self.pods[row] += sign
        self.load_changes.add(row, self.size)

    def _use_ports(self, name: str, load: Load, sign: int) -> None:
        for address, protocol, port in load.ports:
            nodes = self._port_users.setdefault((protocol, port), {})
            addresses = nodes.setdefault(name, {})
            addresses[address] = addresses.get(address, 0) + sign
            if not addresses[address]:
                del addresses[address]
            if not addresses:
                del nodes[name]
            if not nodes:
                del self._port_users[protocol, port]


def _node_facts(node: Mapping[str, Any]) -> tuple[Any, ...]:
    """All that scheduling reads in a node: (allocatable, labels, taints, unschedulable), comparable."""
    spec, metadata = node.get("spec") or {}, node["metadata"]
    try:
        amounts = tuple(sorted(allocatable(node).items()))
    except ValueError as error:
        raise ValueError(f"node {metadata['name']}: {error}") from None
    labels = tuple(sorted((metadata.get("labels") or {}).items()))
    taints = tuple((t.get("key", ""), t.get("value") or "", t.get("effect", "")) for t in spec.get("taints") or ())
    return amounts, labels, taints, bool(spec.get("unschedulable"))


def _copied(value: _T) -> Any:
    """One level deeper than a shallow copy where this module nests; what is frozen is shared."""
    if isinstance(value, np.ndarray | ChangeLog | Interned | list | set):
        return value.copy()
    if isinstance(value, dict):
        return {key: _copied(each) if isinstance(each, dict) else each for key, each in value.items()}
    return value
