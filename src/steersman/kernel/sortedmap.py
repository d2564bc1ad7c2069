"""A persistent sorted map in buckets: the one container under the store, its indexes and the timers.

Entries live in sorted buckets of at most `BUCKET` keys, so a write copies one bucket, a range scan costs its
result, and list order and continue tokens need no sort. Every map and bucket belongs to an *owner* token. A map is
changed through `writable(owner)`: what the owner made is changed in place, everything else is copied first. To
freeze a map for ever, forget its token.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any, Final, Generic, TypeVar

BUCKET: Final = 256
"""Keys in a bucket: copying one costs about a microsecond, and a million keys still need only ~6,000 buckets."""

K = TypeVar("K", bound=Any)
V = TypeVar("V")


_MISSING: Final = object()
ANYTHING: Final = object()
OTHER: Final = object()
"""See `SortedMap.put`."""


class _Bucket:
    __slots__ = ("keys", "owner", "values")

    def __init__(self, keys: list[Any], values: list[Any], owner: object) -> None:
        self.keys = keys
        self.values = values
        self.owner = owner


class SortedMap(Generic[K, V]):
    """Keys of one totally ordered type to values; see the module's text for its costs."""

    __slots__ = ("_buckets", "_firsts", "_owner", "size")

    def __init__(self, owner: object) -> None:
        self._owner = owner
        self._buckets: list[_Bucket] = []
        self._firsts: list[Any] = []
        self.size = 0

    def writable(self, owner: object) -> SortedMap[K, V]:
        """This map when `owner` made it, else a copy that `owner` may change. Costs O(number of buckets)."""
        if self._owner is owner:
            return self
        other: SortedMap[K, V] = SortedMap(owner)
        other._buckets = self._buckets.copy()
        other._firsts = self._firsts.copy()
        other.size = self.size
        return other

    def __len__(self) -> int:
        return self.size

    def get(self, key: K, default: Any = None) -> Any:
        """The value at `key`, or `default`."""
        at = bisect_right(self._firsts, key) - 1
        if at < 0:
            return default
        bucket = self._buckets[at]
        keys = bucket.keys
        index = bisect_left(keys, key)
        if index < len(keys) and keys[index] == key:
            return bucket.values[index]
        return default

    def __contains__(self, key: K) -> bool:
        return self.get(key, _MISSING) is not _MISSING

    def put(self, key: K, value: V, expected: Any = ANYTHING) -> Any:
        """Sets the value at `key`; returns the value it replaces, or None. When that is not the `expected` one,
        nothing is set and `OTHER` is returned."""
        if not self._buckets:
            if expected is not None and expected is not ANYTHING:
                return OTHER
            self._buckets.append(_Bucket([key], [value], self._owner))
            self._firsts.append(key)
            self.size = 1
            return None
        at = max(0, bisect_right(self._firsts, key) - 1)
        bucket = self._writable(at)
        keys = bucket.keys
        index = bisect_left(keys, key)
        if index < len(keys) and keys[index] == key:
            old = bucket.values[index]
            if old is not expected and expected is not ANYTHING:
                return OTHER
            bucket.values[index] = value
            return old
        if expected is not None and expected is not ANYTHING:
            return OTHER
        keys.insert(index, key)
        bucket.values.insert(index, value)
        self.size += 1
        if index == 0:
            self._firsts[at] = key
        if len(keys) > BUCKET:
            self._split(at, bucket)
        return None

    def pop(self, key: K) -> Any:
        """Removes `key`; returns its value, or None when it is not there."""
        at = bisect_right(self._firsts, key) - 1
        if at < 0:
            return None
        keys = self._buckets[at].keys
        index = bisect_left(keys, key)
        if index >= len(keys) or keys[index] != key:
            return None
        bucket = self._writable(at)
        old = bucket.values.pop(index)
        bucket.keys.pop(index)
        self.size -= 1
        if not bucket.keys:
            del self._buckets[at], self._firsts[at]
        elif index == 0:
            self._firsts[at] = bucket.keys[0]
        return old

    def first(self) -> tuple[K, V] | None:
        """The smallest key and its value, or None."""
        if not self._buckets:
            return None
        bucket = self._buckets[0]
        return bucket.keys[0], bucket.values[0]

    def items(self, start: K | None = None, after: bool = False) -> Iterator[tuple[K, V]]:
        """Entries in key order from `start` (or strictly after it). The map must not change meanwhile."""
        if start is None:
            for bucket in self._buckets:
                yield from zip(bucket.keys, bucket.values, strict=True)
            return
        at = max(0, bisect_right(self._firsts, start) - 1)
        for bucket in self._buckets[at : at + 1]:
            index = bisect_right(bucket.keys, start) if after else bisect_left(bucket.keys, start)
            yield from zip(bucket.keys[index:], bucket.values[index:], strict=True)
        for bucket in self._buckets[at + 1 :]:
            yield from zip(bucket.keys, bucket.values, strict=True)

    def count_after(self, key: K) -> int:
        """How many keys are greater than `key`. Costs O(number of buckets)."""
        at = max(0, bisect_right(self._firsts, key) - 1)
        found = sum([len(bucket.keys) for bucket in self._buckets[at + 1 :]])
        for bucket in self._buckets[at : at + 1]:
            found += len(bucket.keys) - bisect_right(bucket.keys, key)
        return found

    def values(self) -> Iterator[V]:
        """Values in key order."""
        for bucket in self._buckets:
            yield from bucket.values

    def _writable(self, at: int) -> _Bucket:
        bucket = self._buckets[at]
        if bucket.owner is not self._owner:
            bucket = self._buckets[at] = _Bucket(bucket.keys.copy(), bucket.values.copy(), self._owner)
        return bucket

    def _split(self, at: int, bucket: _Bucket) -> None:
        # Appending in key order is the common case (names count upwards): leave the left one nearly full then.
        keys, values = bucket.keys, bucket.values
        cut = BUCKET - 8 if at == len(self._buckets) - 1 else BUCKET // 2
        right = _Bucket(keys[cut:], values[cut:], self._owner)
        del keys[cut:], values[cut:]
        self._buckets.insert(at + 1, right)
        self._firsts.insert(at + 1, right.keys[0])
