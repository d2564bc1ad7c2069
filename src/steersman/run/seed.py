"""What every workspace has from its start, made once and then copied: the policy, namespaces, priority classes, flows.

The first new workspace of a process makes these some 160 objects by requests, as kube-apiserver does. They are alike in
all others, but for their uids and times; so the next ones share the sections and skip the request machine, which is
what makes a workspace cheap: in time, and in memory.
"""

from __future__ import annotations

from collections.abc import Iterator

from steersman.api.times import MICRO, time_text
from steersman.kernel.object import Object, Section
from steersman.kernel.store import Store
from steersman.kernel.value import Frozen
from steersman.serve.random_uuid import random_uuid


class Seed:
    """Empty until `keep`; then for every later workspace of the process."""

    def __init__(self) -> None:
        self.objects: tuple[Object, ...] = ()

    def keep(self, store: Store) -> None:
        """Takes the objects of a workspace in which nothing else has been made yet, in the order of their making."""
        self.objects = tuple(sorted(store.objects(), key=lambda obj: obj.rv))
        for obj in self.objects:
            for section in (obj.spec, obj.rest, obj.status):
                if section is not None:
                    _ = section.digest  # once for all

    def sprout(self, now: int) -> Iterator[Object]:
        """Each as if it were created at `now` (microseconds), with a uid of its own."""
        time = time_text(now // MICRO)
        for obj in self.objects:
            uid = random_uuid()
            meta = Section(Frozen({**obj.meta.value, "uid": uid, "creationTimestamp": time}))
            managers = tuple([manager._replace(time=time) for manager in obj.managers])
            yield obj.replace(meta=meta, managers=managers, rv=0)
