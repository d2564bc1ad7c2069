"""Who writes, and what comes of it."""

from __future__ import annotations

from typing import NamedTuple

from steersman.api.explain import Past
from steersman.kernel.object import Object


class By(NamedTuple):
    """Who writes, and how strictly the body is read."""

    manager: str
    time: str
    """RFC 3339, whole seconds."""
    validation: str = "Warn"
    """fieldValidation: Strict refuses undeclared fields, Warn and Ignore drop them."""
    subresource: str = ""
    part: str = ""
    """The subresource that managedFields tell, where another one is written through it: scale."""
    judge: bool = True
    """Whether the result must be valid; a draft for admission plugins need not be, yet."""
    past: Past | None = None
    served: str = ""
    """The apiVersion it is written in, where that is not the one it is stored in: events.k8s.io/v1, autoscaling/v1."""

    @property
    def told(self) -> str:
        """The subresource of an entry of managedFields."""
        return self.part or self.subresource

    @property
    def since(self) -> str:
        """The time of an entry of managedFields; kube-apiserver notes none for what comes through a Scale."""
        return "" if self.part else self.time


class Written(NamedTuple):
    """A new version (revision 0 until it is committed), or the old one when nothing changed."""

    obj: Object
    warnings: tuple[str, ...] = ()
