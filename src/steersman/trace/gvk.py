"""Group, version and kind as a trace writes them: `apps/v1.Deployment`, `v1.Pod`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, order=True)
class GVK:
    """Names a type of object. `group` is empty for the core group."""

    group: str
    version: str
    kind: str

    def __str__(self) -> str:
        return f"{self.api_version}.{self.kind}"

    @property
    def api_version(self) -> str:
        """As `apiVersion` of an object: `apps/v1`, `v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @classmethod
    def parse(cls, text: str) -> GVK:
        """From `group/version.Kind`, `version.Kind` or `/version.Kind`; ValueError otherwise."""
        group, _, rest = text.rpartition("/")
        version, dot, kind = rest.partition(".")
        if not (dot and version and kind) or "/" in group or "." in kind:
            raise ValueError(
                f"{text!r} does not name a kind; write group/version.Kind, as in apps/v1.Deployment or v1.Pod"
            )
        return cls(group, version, kind)

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> GVK:
        """From `apiVersion` and `kind` of an object or an owner reference; ValueError if unfit."""
        api_version, kind = obj.get("apiVersion"), obj.get("kind")
        if not isinstance(api_version, str) or not isinstance(kind, str):
            raise ValueError("apiVersion and kind must both be strings")
        return cls.parse(f"{api_version}.{kind}")


POD = GVK("", "v1", "Pod")

# Where each built-in kind keeps its pod template, as JSON pointers to something with a `spec`.
# `/spec` for ReplicaSet is what SimKube has (a slip there); kept, since it refuses a trace that differs.
TEMPLATE_PATHS: dict[GVK, tuple[str, ...]] = {
    GVK("batch", "v1", "CronJob"): ("/spec/jobTemplate/spec/template",),
    GVK("apps", "v1", "DaemonSet"): ("/spec/template",),
    GVK("apps", "v1", "Deployment"): ("/spec/template",),
    GVK("batch", "v1", "Job"): ("/spec/template",),
    GVK("apps", "v1", "StatefulSet"): ("/spec/template",),
    GVK("apps", "v1", "ReplicaSet"): ("/spec",),
    POD: ("",),
}
