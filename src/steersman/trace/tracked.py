"""What a recording follows of one kind: an entry of the tracer's configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from steersman.trace.gvk import GVK, TEMPLATE_PATHS


@dataclass(frozen=True, slots=True)
class Tracked:
    """Options of one tracked kind.

    `paths` are JSON pointers to the pod templates (`*` stands for every element of an array), None
    where nothing was said. With `lifecycle`, how long each pod ran is recorded; with `skip_owned`,
    objects that have an owner are not.
    """

    paths: tuple[str, ...] | None = None
    lifecycle: bool = False
    skip_owned: bool = False

    def template_paths(self, gvk: GVK) -> tuple[str, ...]:
        """The paths said here, else those of a built-in kind, else none."""
        return self.paths if self.paths is not None else TEMPLATE_PATHS.get(gvk, ())

    def options(self) -> dict[str, Any]:
        """As the file has it: what is not set is left out."""
        options: dict[str, Any] = {}
        if self.paths is not None:
            options["podSpecTemplatePaths"] = list(self.paths)
        if self.lifecycle:
            options["trackLifecycle"] = True
        if self.skip_owned:
            options["skipOwned"] = True
        return options

    @classmethod
    def parse(cls, options: Any) -> Tracked:
        """From the options in a file; ValueError names the option that does not fit."""
        if not isinstance(options, dict):
            raise ValueError(f"expected a map of options, {{}} for none, found {type(options).__name__}")
        known = {"podSpecTemplatePaths", "podSpecTemplatePath", "trackLifecycle", "skipOwned"}
        unknown = [key for key in options if key not in known]
        if unknown:
            raise ValueError(f"unknown option {unknown[0]!r}; known are {', '.join(sorted(known))}")
        for flag in ("trackLifecycle", "skipOwned"):
            if not isinstance(options.get(flag, False), bool):
                raise ValueError(f"{flag} must be true or false")
        paths = options.get("podSpecTemplatePaths")
        if paths is None and options.get("podSpecTemplatePath") is not None:
            paths = [options["podSpecTemplatePath"]]  # the deprecated singular, still read by SimKube
        if paths is not None:
            if not isinstance(paths, list) or not all(isinstance(p, str) for p in paths):
                raise ValueError("podSpecTemplatePaths must be a list of JSON pointers")
            paths = tuple(paths)
        return cls(paths, options.get("trackLifecycle", False), options.get("skipOwned", False))
