"""The hashes a trace names specs by, bit for bit as SimKube computes them.

Source of the facts: acrlabs/simkube 4ff5124, `sk-core/src/jsonutils/hash.rs` and
`sk-core/src/k8s/pod_ext.rs`; verified against the index and the pod hashes of its example traces.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from steersman.trace.siphash import siphash13

# A projected token volume gets a random suffix for each pod, so it may not count as a difference.
TOKEN_VOLUME_PREFIX = "kube-api-access"

# Fields filled in for each pod after its template was written.
_PER_POD_FIELDS = ("nodeName", "serviceAccount", "serviceAccountName")


def spec_hash(value: Any) -> int:
    """Unsigned 64-bit hash of a JSON value; a missing spec is hashed as `None`.

    Raises ValueError for anything that is not JSON, and for integers beyond 64 bits.
    """
    out = bytearray()
    _feed(value, out)
    return siphash13(out)


def stable_pod_spec(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a pod's spec that all pods of one template share (a new dict; input untouched).

    Without node name, service account, token volumes and main containers' ports; `volumes` and
    `volumeMounts` are always present, and a field that is null counts as absent.
    """
    stable: dict[str, Any] = _without_nulls({k: v for k, v in spec.items() if k not in _PER_POD_FIELDS})
    stable["volumes"] = _without_token_volumes(stable.get("volumes"))
    for name in ("initContainers", "containers"):
        if name in stable:
            stable[name] = [_stable_container(c, ports=name == "initContainers") for c in stable[name]]
    return stable


def pod_hash(spec: Mapping[str, Any]) -> int:
    """Hash of a pod's stable spec: the inner key of a trace's pod lifecycles."""
    return spec_hash(stable_pod_spec(spec))


def _stable_container(container: dict[str, Any], *, ports: bool) -> dict[str, Any]:
    kept = {k: v for k, v in container.items() if ports or k != "ports"}
    kept["volumeMounts"] = _without_token_volumes(kept.get("volumeMounts"))
    return kept


def _without_token_volumes(volumes: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    return [v for v in volumes or () if not str(v.get("name", "")).startswith(TOKEN_VOLUME_PREFIX)]


def _without_nulls(value: Any) -> Any:
    # SimKube hashes a typed pod, and a typed pod has no nulls.
    if isinstance(value, Mapping):
        return {k: _without_nulls(v) for k, v in value.items() if v is not None}
    if isinstance(value, list | tuple):
        return [_without_nulls(v) for v in value]
    return value


def _feed(value: Any, out: bytearray) -> None:
    """Append to `out` the bytes Rust's derived `Hash` would write: no lengths, no brackets."""
    if isinstance(value, str):
        out += value.encode()
        out.append(0xFF)
    elif isinstance(value, Mapping):
        for key in sorted(value):  # code point order is UTF-8 byte order
            out += key.encode()
            out.append(0xFF)
            _feed(value[key], out)
    elif isinstance(value, list | tuple):
        for item in value:
            _feed(item, out)
    elif value is None:
        out += bytes(8)
    elif isinstance(value, bool):
        out.append(value)
    elif isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            raise ValueError(f"{value} does not fit into 64 bits")
        out += struct.pack("<Q", value) if value >= 0 else struct.pack("<q", value)
    elif isinstance(value, float):
        out += struct.pack("<d", value or 0.0)  # -0.0 and 0.0 are one number
    else:
        raise ValueError(f"a spec holds JSON values only, found {type(value).__name__}")
