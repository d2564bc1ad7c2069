"""Rules of a CustomResourceDefinition's spec, in kube-apiserver's words.

Kubernetes looks at a definition in an older form, in which what all versions have alike stands at the top: so an error
in the schema of a definition with one version is told at `spec.validation.openAPIV3Schema`. Source of the facts:
apiextensions-apiserver 0.36, pkg/apis/apiextensions/validation/validation.go, pkg/apis/apiextensions/v1/conversion.go;
apiserver 0.36, pkg/util/webhook.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from steersman.api import names
from steersman.api.crd.crd_schema_rules import schema
from steersman.api.errors import Cause, quote
from steersman.api.rules import internal
from steersman.kernel.value import EMPTY

Json = Any
Causes = list[Cause]
COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
REVIEW_VERSIONS: Final = ("v1", "v1beta1")
MAX_SELECTABLE: Final = 8
MAX_WARNING: Final = 256
_URL: Final = re.compile(r"(?:([^:/?#]+):)?(?://([^/?#]*))?[^?#]*(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
"""Scheme, authority, query and fragment (RFC 3986, appendix B)."""
_PARTS: Final = {
    "schema": "validation",
    "subresources": "subresources",
    "additionalPrinterColumns": "additionalPrinterColumns",
    "selectableFields": "selectableFields",
}
"""Field of a version → the field at the top that Kubernetes keeps it in when all versions agree."""


def spec(out: Causes, path: str, value: Mapping[str, Json]) -> None:
    """The spec, filled with its defaults."""
    _group(out, f"{path}.group", value.get("group") or "")
    _chosen(out, f"{path}.scope", value.get("scope") or "", ("Cluster", "Namespaced"))
    versions = list(value.get("versions") or ())
    shared = {field for field in _PARTS if versions and all(v.get(field) == versions[0].get(field) for v in versions)}
    for index, version in enumerate(versions):
        if ((version.get("schema") or EMPTY).get("openAPIV3Schema")) is None:
            out.append(Cause.required(f"{path}.versions[{index}].schema.openAPIV3Schema"))
    for index, version in enumerate(versions):
        _version(out, f"{path}.versions[{index}]", version, shared)
    if len({version.get("name") for version in versions}) < len(versions):
        detail = "must contain unique version names"
        out.append(Cause.invalid(f"{path}.versions", [_as_go(v, shared) for v in versions], detail))
    if sum(1 for version in versions if version.get("storage")) != 1:
        detail = "must have exactly one version marked as storage version"
        out.append(Cause.invalid(f"{path}.versions", [_as_go(v, shared) for v in versions], detail))
    if versions and (problems := names.dns1035_label(str(versions[0].get("name", "")))):  # the older form has it twice
        out.append(Cause.invalid(f"{path}.version", versions[0].get("name", ""), ",".join(problems)))
    _names(out, f"{path}.names", value.get("names") or EMPTY)
    if versions:
        at = {field: f"{path}.{top}" for field, top in _PARTS.items()}
        any_status = any("status" in (version.get("subresources") or EMPTY) for version in versions)
        _parts(out, at, versions[0], shared, any_status)
    _conversion(out, f"{path}.conversion", value.get("conversion") or EMPTY)
    if value.get("preserveUnknownFields"):
        detail = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        )
        out.append(Cause.invalid(f"{path}.preserveUnknownFields", True, detail))


def _chosen(out: Causes, path: str, text: str, accepted: tuple[str, ...]) -> None:
    if not text:
        out.append(Cause.required(path))
    elif text not in accepted:
        out.append(Cause.unsupported(path, text, accepted))


def _group(out: Causes, path: str, group: str) -> None:
    if not group:
        out.append(Cause.required(path))
    elif problems := names.dns1123_subdomain(group):
        out.append(Cause.invalid(path, group, ",".join(problems)))
    elif "." not in group:
        out.append(Cause.invalid(path, group, "should be a domain with at least one dot"))


def _version(out: Causes, path: str, version: Mapping[str, Json], shared: set[str]) -> None:
    """What a version has of its own; what all have alike is judged once, at the top."""
    if problems := names.dns1035_label(str(version.get("name", ""))):
        out.append(Cause.invalid(f"{path}.name", version.get("name", ""), ",".join(problems)))
    _warning(out, f"{path}.deprecationWarning", version)
    has_status = "status" in (version.get("subresources") or EMPTY)
    _parts(out, {field: f"{path}.{field}" for field in _PARTS}, version, _PARTS.keys() - shared, has_status)


def _parts(out: Causes, at: Mapping[str, str], version: Mapping[str, Json], judged: set[str], has_status: bool) -> None:
    """Those parts of a version that are judged here; `at` says where each stands."""
    openapi = (version.get("schema") or EMPTY).get("openAPIV3Schema")
    if "schema" in judged and openapi is not None:
        schema(out, f"{at['schema']}.openAPIV3Schema", openapi, has_status)
    if "subresources" in judged:
        _scale(out, at["subresources"], (version.get("subresources") or EMPTY).get("scale"))
    if "additionalPrinterColumns" in judged:
        for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
            _column(out, f"{at['additionalPrinterColumns']}[{index}]", column)
    if "selectableFields" in judged:
        _selectable(out, at["selectableFields"], version.get("selectableFields") or (), openapi or EMPTY)


def _warning(out: Causes, path: str, version: Mapping[str, Json]) -> None:
    text = version.get("deprecationWarning")
    if text is None:
        return
    problems = []
    if not version.get("deprecated"):
        problems.append("can only be set for deprecated versions")
    else:
        if len(text.encode("utf-8", "surrogatepass")) > MAX_WARNING:
            problems.append(f"must be <= {MAX_WARNING} characters long")
        if not text:
            problems.append("must not be an empty string")
        bad = next((index for index, char in enumerate(text) if not char.isprintable()), None)
        if bad is not None:
            index = len(text[:bad].encode("utf-8", "surrogatepass"))
            detail = f"must only contain printable UTF-8 characters; non-printable character found at index {index}"
            problems.append(detail)
    out.extend(Cause.invalid(path, text, problem) for problem in problems)


def _as_go(version: Mapping[str, Json], shared: Collection[str]) -> dict[str, Json]:
    """A version as an error of kube-apiserver shows it: what all versions share is left out."""
    own = {field: value for field, value in version.items() if field not in shared}
    return internal.shown(own, internal.CRD_VERSION)


def unborn(spec: Mapping[str, Json]) -> list[Cause]:
    """What is wrong only because there has never been such a definition: no version was ever stored."""
    if any(version.get("storage") for version in spec.get("versions") or ()):
        return []
    return [Cause.invalid("status.storedVersions", None, "must have at least one stored version")]


def _names(out: Causes, path: str, given: Mapping[str, Json]) -> None:
    for field in ("plural", "singular", "kind", "listKind"):
        if not given.get(field):
            out.append(Cause.required(f"{path}.{field}"))
    for field in ("plural", "singular"):
        text = given.get(field) or ""
        if text and (problems := names.dns1035_label(text)):
            out.append(Cause.invalid(f"{path}.{field}", text, ",".join(problems)))
    for field in ("kind", "listKind"):
        text = given.get(field) or ""
        if text and (problems := names.dns1035_label(text.lower())):
            detail = "may have mixed case, but should otherwise match: " + ",".join(problems)
            out.append(Cause.invalid(f"{path}.{field}", text, detail))
    for field in ("shortNames", "categories"):
        if field == "categories" and given.get("kind") and given.get("kind") == given.get("listKind"):
            detail = "kind and listKind may not be the same"
            out.append(Cause.invalid(f"{path}.listKind", given["listKind"], detail))
        for index, text in enumerate(given.get(field) or ()):
            if problems := names.dns1035_label(text):
                out.append(Cause.invalid(f"{path}.{field}[{index}]", text, ",".join(problems)))


def _path(out: Causes, path: str, text: str) -> bool:
    """A simple JSONPath; whether it is one."""
    if text.startswith("."):
        return True
    out.append(Cause.invalid(path, text, "must be a simple json path starting with ."))
    return False


def _column(out: Causes, path: str, column: Mapping[str, Json]) -> None:
    kind, form, at = column.get("type") or "", column.get("format") or "", column.get("jsonPath") or ""
    if not column.get("name"):
        out.append(Cause.required(f"{path}.name"))
    types = f"must be one of {','.join(COLUMN_TYPES)}"
    if not kind:
        out.append(Cause.required(f"{path}.type", types))
    elif kind not in COLUMN_TYPES:
        out.append(Cause.invalid(f"{path}.type", kind, types))
    if form and form not in COLUMN_FORMATS:
        out.append(Cause.invalid(f"{path}.format", form, f"must be one of {','.join(COLUMN_FORMATS)}"))
    if not at:
        out.append(Cause.required(f"{path}.JSONPath"))
    else:
        _path(out, f"{path}.JSONPath", at)


def _scale(out: Causes, path: str, scale: Mapping[str, Json] | None) -> None:
    if scale is None:
        return
    for field, section in (("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")):
        at, text = f"{path}.scale.{field}", scale.get(field) or ""
        if not text:
            out.append(Cause.required(at))
        elif _path(out, at, text) and not text.startswith(section + "."):
            out.append(Cause.invalid(at, text, f"should be a json path under {section}"))
    text, at = scale.get("labelSelectorPath") or "", f"{path}.scale.labelSelectorPath"
    if text and _path(out, at, text) and not text.startswith((".spec.", ".status.")):
        out.append(Cause.invalid(at, text, "should be a json path under either .spec or .status"))


def _selectable(out: Causes, path: str, fields: Any, openapi: Mapping[str, Json]) -> None:
    seen: list[str] = []
    for index, field in enumerate(fields):
        at, text = f"{path}[{index}].jsonPath", field.get("jsonPath") or ""
        if not text:
            out.append(Cause.required(at))
            continue
        found, problem = _declared(text, openapi)
        if found is None:
            out.append(Cause.invalid(at, text, f"is an invalid path: {problem}"))
            continue
        if text.startswith(".metadata"):
            out.append(Cause.invalid(at, text, "must not point to fields in metadata"))
        if found.get("type") not in ("string", "boolean", "integer"):
            detail = (
                "must point to a field of type string, boolean or integer. Enum string fields and strings with "
                "formats are allowed."
            )
            out.append(Cause.invalid(at, text, detail))
        if text in seen:
            out.append(Cause.duplicate(at, text))
        else:
            seen.append(text)
    if len(seen) > MAX_SELECTABLE:
        out.append(Cause.too_many(path, len(seen), MAX_SELECTABLE))


def _declared(text: str, openapi: Mapping[str, Json]) -> tuple[Mapping[str, Json] | None, str]:
    """The schema that a path in dot notation leads to, or why it leads nowhere."""
    if "[" in text:
        return None, "array notation is not allowed"
    if not text.startswith("."):
        return None, f"expected [ or . but got: {text.partition('.')[0]}"
    node: Mapping[str, Json] = openapi
    for name in text[1:].split("."):
        properties = node.get("properties") or EMPTY
        if not name or name not in properties:
            return None, "does not refer to a valid field"
        node = properties[name]
    return node, ""


# -- conversion ------------------------------------------------------------------------------------------------


def _conversion(out: Causes, path: str, conversion: Mapping[str, Json]) -> None:
    strategy, webhook = conversion.get("strategy") or "", conversion.get("webhook") or EMPTY
    _chosen(out, f"{path}.strategy", strategy, ("None", "Webhook"))
    at, config = f"{path}.webhookClientConfig", webhook.get("clientConfig")
    versions = list(webhook.get("conversionReviewVersions") or ())
    if strategy == "Webhook":
        if config is None:
            out.append(Cause.required(at, "required when strategy is set to Webhook"))
        else:
            client_config(out, at, config)
        _review_versions(out, f"{path}.conversionReviewVersions", versions)
        return
    detail = "should not be set when strategy is not set to Webhook"
    if config is not None:
        out.append(Cause.forbidden(at, detail))
    if versions:
        out.append(Cause.forbidden(f"{path}.conversionReviewVersions", detail))


def client_config(out: Causes, path: str, config: Mapping[str, Json]) -> None:
    """Where a webhook is: a URL, or a service with port and path."""
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        out.append(Cause.required(path, "exactly one of url or service is required"))
    elif url is not None:
        _url(out, f"{path}.url", url)
    else:
        _service(out, f"{path}.service", service or EMPTY)


def _url(out: Causes, path: str, text: str) -> None:
    form = "; desired format: https://host[/path]"
    if any(char < " " or char == "\x7f" for char in text):
        why = f"parse {quote(text)}: net/url: invalid control character in URL"
        out.append(Cause.required(path, f"url must be a valid URL: {why}{form}"))
        return
    match = _URL.match(text)
    scheme, authority, query, fragment = match.groups("") if match else ("", "", "", "")
    user, _, host = authority.rpartition("@")
    if scheme != "https":
        out.append(Cause.invalid(path, scheme, f"'https' is the only allowed URL scheme{form}"))
    if not host:
        out.append(Cause.invalid(path, host, f"host must be specified{form}"))
    if user:
        out.append(Cause.invalid(path, user, "user information is not permitted in the URL"))
    if fragment:
        out.append(Cause.invalid(path, fragment, "fragments are not permitted in the URL"))
    if query:
        out.append(Cause.invalid(path, query, "query parameters are not permitted in the URL"))


def _service(out: Causes, path: str, service: Mapping[str, Json]) -> None:
    out.extend(Cause.required(f"{path}.{field}") for field in ("name", "namespace") if not service.get(field))
    port = service.get("port", 443)
    if not 1 <= port <= 65535:
        detail = "port is not valid: must be between 1 and 65535, inclusive"
        out.append(Cause.invalid(f"{path}.port", port, detail))
    text, at = service.get("path"), f"{path}.path"
    if text in (None, "", "/"):
        return
    if text == "//":
        out.append(Cause.invalid(at, text, "segment[0] may not be empty"))
        return
    if not text.startswith("/"):
        out.append(Cause.invalid(at, text, "must start with a '/'"))
    for index, segment in enumerate(text[1:].removesuffix("/").split("/")):
        if not segment:
            out.append(Cause.invalid(at, text, f"segment[{index}] may not be empty"))
            continue
        problems = names.dns1123_subdomain(segment)
        out.extend(Cause.invalid(at, text, f"segment[{index}]: {problem}") for problem in problems)


def _review_versions(out: Causes, path: str, versions: list[str]) -> None:
    if not versions:
        out.append(Cause.required(path))
        return
    for index, version in enumerate(versions):
        if version in versions[:index]:
            out.append(Cause.invalid(f"{path}[{index}]", version, "duplicate version"))
        else:
            problems = names.dns1035_label(version)
            out.extend(Cause.invalid(f"{path}[{index}]", version, problem) for problem in problems)
    if not set(versions) & set(REVIEW_VERSIONS):
        out.append(Cause.invalid(path, versions, f"must include at least one of {', '.join(REVIEW_VERSIONS)}"))
