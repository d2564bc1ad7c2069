"""Content negotiation: in which form a client wants its answer.

The forms are JSON, a Table, or metadata only, as kube-apiserver's `as=...;v=v1;g=meta.k8s.io` parameters ask for
them, and each of them is written in YAML for who prefers that (`serve.yaml_answer`). Protobuf is never answered:
clients that prefer it also accept JSON.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from steersman.api import errors, preconditions
from steersman.api.kinds import Kind

MAX_ACCEPT: Final = 4096
"""Characters of an Accept header; the longest real ones have about 300."""
META_VERSION: Final = "meta.k8s.io/v1"
META_VERSIONS: Final = {"v1": META_VERSION, "v1beta1": "meta.k8s.io/v1beta1"}
"""What a form may be of: the old version has the same fields."""
TABLE: Final = "Table"
PARTIAL: Final = "PartialObjectMetadata"
PARTIAL_LIST: Final = "PartialObjectMetadataList"
YAML: Final = "application/yaml"
ACCEPTED: Final = ("application/json", YAML)
STREAMS: Final = ("application/json;stream=watch",)
"""What a watch can be: YAML is not written piece by piece."""
_TYPES: Final = (*ACCEPTED, "*/*")


class Form(NamedTuple):
    """How an answer is written. `kind` is "", Table, PartialObjectMetadata or PartialObjectMetadataList. Whatever it
    is, the Content-Type is plain application/json, as kube-apiserver has it."""

    kind: str = ""
    version: str = META_VERSION
    """The apiVersion of a Table, or of metadata."""


class _Clause(NamedTuple):
    media: str
    params: dict[str, str]
    quality: float


JSON: Final = Form()


@lru_cache(maxsize=256)
def _clauses(accept: str) -> tuple[_Clause, ...]:
    """The clauses of an Accept header by quality, then order (RFC 9110 §12.5.1)."""
    found = []
    for clause in accept[:MAX_ACCEPT].split(","):
        media, *params = [part.strip() for part in clause.split(";")]
        pairs = dict(param.partition("=")[::2] for param in params if "=" in param)
        try:
            quality = float(pairs.pop("q", "1"))
        except ValueError:
            quality = 0.0
        if media and quality > 0:
            found.append(_Clause(media.lower(), pairs, quality))
    return tuple(sorted(found, key=lambda clause: -clause.quality))


def _version(clause: _Clause) -> str:
    """The apiVersion of the form that a clause asks for; "" for none there is."""
    return META_VERSIONS.get(clause.params.get("v", ""), "") if clause.params.get("g") == "meta.k8s.io" else ""


@lru_cache(maxsize=256)
def form_of(accept: str, is_list: bool) -> Form:
    """The best form for an object or a list (a watch counts as a list). Raises ApiError 406."""
    if not accept.strip():
        return JSON
    for clause in _clauses(accept):
        if clause.media not in _TYPES:
            continue
        wanted = clause.params.get("as", "")
        if not wanted:
            return JSON
        version = _version(clause)
        if not version:
            continue
        if wanted in (TABLE, PARTIAL) or (wanted == PARTIAL_LIST and is_list):
            return Form(wanted, version)  # a watch of metadata asks for objects one by one
    refused = errors.not_acceptable(ACCEPTED)
    if not any(clause.media in _TYPES for clause in _clauses(accept)):
        refused.message = f"406: Not Acceptable\n\nAvailable representations: {', '.join(ACCEPTED)}"
        refused.details = errors.Details()
    raise refused


@lru_cache(maxsize=256)
def prefers_yaml(accept: str) -> bool:
    """Whether a client wants an answer, of whatever form, in YAML rather than in JSON."""
    for clause in _clauses(accept) if YAML in accept else ():
        wanted = clause.params.get("as", "")
        meant = not wanted or _version(clause)
        if clause.media in _TYPES and meant and wanted in ("", TABLE, PARTIAL, PARTIAL_LIST):
            return clause.media == YAML
    return False


def no_list(kind: Kind) -> errors.ApiError:
    """The refusal of a list of which the metadata of one object was asked for."""
    refused = errors.not_acceptable(())
    internal = preconditions.INTERNAL.get(kind.group) or kind.group.partition(".")[0] or "core"
    of = "unstructured.UnstructuredList" if kind.custom else f"{internal}.{kind.list_kind}"
    refused.message = f"you requested {PARTIAL}, but the requested object is a list (*{of})"
    return refused


@lru_cache(maxsize=256)
def discovery_of(accept: str) -> str:
    """The aggregated discovery version a client prefers over plain JSON: "v2", "v2beta1" or "". Raises ApiError 406."""
    for clause in _clauses(accept):
        if clause.media not in _TYPES:
            continue
        wanted = clause.params.get("as", "")
        if not wanted:
            return ""
        version = clause.params.get("v", "")
        if (wanted, clause.params.get("g")) == ("APIGroupDiscoveryList", "apidiscovery.k8s.io") and version in (
            "v2",
            "v2beta1",
        ):
            return version
    known = (*_TYPES, "application/vnd.kubernetes.protobuf")  # who asks for that takes JSON
    if accept.strip() and not any(clause.media in known and "as" not in clause.params for clause in _clauses(accept)):
        raise errors.not_acceptable(ACCEPTED)
    return ""
