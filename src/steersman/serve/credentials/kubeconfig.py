"""A kubeconfig with one context of ours, beside whatever else the file has.

An existing file is edited as a tree of YAML nodes, not as Python values: other clusters, contexts and users
come through with their scalars as they were written (a quoted date stays quoted). Comments do not, as with
`kubectl config`. The format is client-go's, tools/clientcmd/api/v1/types.go.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from steersman.serve.credentials.tokens import Identity, Tokens, load_tokens, save_tokens
from steersman.serve.files import FileError, locked, make_parents, read_file, write_file

__all__ = [
    "ADMIN",
    "KubeconfigError",
    "Tokens",
    "admin_token",
    "load_tokens",
    "read_token",
    "save_tokens",
    "write_kubeconfig",
]

# The group that RBAC's bootstrap binding makes cluster-admin, as in every Kubernetes.
ADMIN = Identity("steersman-admin", ("system:masters",))
# Marks a cluster entry as made here, so that another program's of the same name is never replaced.
EXTENSION = "steersman.dev/kubeconfig"

# Line breaks of Unicode and the byte order mark, which PyYAML writes bare and then reads as something else.
_RISKY = frozenset("\x85\u2028\u2029\ufeff")

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class KubeconfigError(FileError):
    """A kubeconfig cannot be read or merged into. The text names the file, the field and the remedy."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """One named entry of the lists `clusters`, `users` and `contexts`."""

    section: str
    kind: str
    value: dict[str, Any]


def write_kubeconfig(
    path: Path, server: str, ca_pem: bytes | None, token: str, name: str = "steersman", use: bool = False
) -> None:
    """Write cluster, user and context `name` for `server` (URL) into the kubeconfig at `path`, mode 0600.

    All else in the file is kept. The current context becomes ours if there is none, or if `use`. Without
    `ca_pem` clients use the CAs of their system. Raises FileError: a symlink, a file that is no kubeconfig,
    or an entry `name` that another program made; the file is then untouched.
    """
    make_parents(path)
    with locked(path.parent):
        root = _read(path)
        _refuse_foreign(path, root, name)
        cluster: dict[str, Any] = {"server": server}
        if ca_pem is not None:
            cluster["certificate-authority-data"] = base64.b64encode(ca_pem).decode("ascii")
        cluster["extensions"] = [{"name": EXTENSION, "extension": {"managed": True}}]
        for entry in (
            _Entry("clusters", "cluster", cluster),
            _Entry("users", "user", {"token": token}),
            _Entry("contexts", "context", {"cluster": name, "user": name}),
        ):
            _put(path, root, name, entry)
        current = _get(root, "current-context")
        if use or current is None or not _text(current):
            _set(root, "current-context", _node(name))
        write_file(path, _serialized(root).encode(), 0o600)


def read_token(path: Path, name: str = "steersman") -> str | None:
    """The bearer token of user `name` in the kubeconfig at `path`, or None. Raises FileError."""
    users = _get(_read(path), "users")
    if isinstance(users, yaml.SequenceNode) and (entry := _named(users, name)) is not None:
        user = _get(entry, "user")
        if isinstance(user, yaml.MappingNode) and (token := _get(user, "token")) is not None:
            return _text(token) or None
    return None


def admin_token(tokens: Tokens, path: Path, name: str = "steersman", admin: Identity = ADMIN) -> str:
    """The token of the kubeconfig at `path` if `tokens` knows it as `admin`'s, else a new one.

    So a restart keeps the credential that open kubectl sessions use. Raises FileError.
    """
    token = read_token(path, name)
    if token is not None and tokens.identify(token) == admin:
        return token
    return tokens.issue(admin.user, admin.groups)


def _read(path: Path) -> yaml.MappingNode:
    try:
        data = read_file(path)
    except FileNotFoundError:
        data = b""
    try:
        root = yaml.compose(data.decode(), Loader=_Loader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" line {mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or "not UTF-8 text"
        raise KubeconfigError(f"{path}{where}: not YAML: {problem}; mend it or name another path") from None
    if root is None or (isinstance(root, yaml.ScalarNode) and not _text(root)):
        root = _node({"apiVersion": "v1", "kind": "Config"})
    if not isinstance(root, yaml.MappingNode):
        raise KubeconfigError(f"{path} is not a kubeconfig: not a mapping; name another path")
    kind = _get(root, "kind")
    if kind is not None and _text(kind) not in ("Config", ""):
        raise KubeconfigError(f"{path} is not a kubeconfig: kind is {_text(kind)!r}; name another path")
    version = _get(root, "apiVersion")
    if version is not None and _text(version) not in ("v1", ""):
        raise KubeconfigError(f"{path}: apiVersion {_text(version)!r} is not known, only v1; name another path")
    if kind is None and root.value and not any(_get(root, key) for key in ("clusters", "contexts", "users")):
        raise KubeconfigError(f"{path} is not a kubeconfig: it has no kind and no clusters; name another path")
    return root


def _refuse_foreign(path: Path, root: yaml.MappingNode, name: str) -> None:
    """A cluster called `name` without our mark is someone's; so are a user and a context without a cluster."""
    present = [
        section
        for section in ("clusters", "users", "contexts")
        if isinstance(found := _get(root, section), yaml.SequenceNode) and _named(found, name) is not None
    ]
    if not present:
        return
    clusters = _get(root, "clusters")
    entry = _named(clusters, name) if isinstance(clusters, yaml.SequenceNode) else None
    cluster = _get(entry, "cluster") if entry is not None else None
    extensions = _get(cluster, "extensions") if isinstance(cluster, yaml.MappingNode) else None
    if not isinstance(extensions, yaml.SequenceNode) or _named(extensions, EXTENSION) is None:
        sections = ", ".join(present)
        raise KubeconfigError(
            f"{path}: {sections}: {name!r} was made by another program; choose another name or another path"
        )


def _put(path: Path, root: yaml.MappingNode, name: str, entry: _Entry) -> None:
    """Replace, or append, the entry called `name`."""
    section = _get(root, entry.section)
    if section is None or (isinstance(section, yaml.ScalarNode) and section.tag.endswith(":null")):
        section = _node([])
        _set(root, entry.section, section)
    if not isinstance(section, yaml.SequenceNode):
        raise KubeconfigError(f"{path}: {entry.section}: not a list; mend it or name another path")
    new = _node({"name": name, entry.kind: entry.value})
    kept = [node for node in section.value if not _is_named(node, name)]
    section.value = [*kept, new]
    if section.flow_style and not kept:
        section.flow_style = False  # `clusters: []` becomes a block


def _named(section: yaml.SequenceNode, name: str) -> yaml.MappingNode | None:
    return next((node for node in section.value if _is_named(node, name)), None)


def _is_named(node: yaml.Node, name: str) -> bool:
    found = _get(node, "name") if isinstance(node, yaml.MappingNode) else None
    return found is not None and _text(found) == name


def _get(mapping: yaml.MappingNode, key: str) -> yaml.Node | None:
    return next((value for found, value in mapping.value if _text(found) == key), None)


def _set(mapping: yaml.MappingNode, key: str, value: yaml.Node) -> None:
    for index, (found, _) in enumerate(mapping.value):
        if _text(found) == key:
            mapping.value[index] = (found, value)
            return
    mapping.value.append((_node(key), value))


def _text(node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode) or node.tag.endswith(":null"):
        return ""
    return str(node.value)


def _serialized(root: yaml.Node) -> str:
    """The text of a tree, every scalar as it was."""
    escape = False
    todo, seen = [root], set()
    while todo:
        node = todo.pop()
        if id(node) in seen:  # an alias
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            todo.extend(part for pair in node.value for part in pair)
        elif isinstance(node, yaml.SequenceNode):
            todo.extend(node.value)
        elif node.tag == "tag:yaml.org,2002:timestamp":
            node.tag = "tag:yaml.org,2002:str"  # as client-go reads it; the emitter would write a tag
        elif not _RISKY.isdisjoint(node.value):
            escape = True
    # Without a width no scalar is folded.
    text: str = yaml.serialize(root, Dumper=_Dumper, width=2**31 - 1, allow_unicode=not escape)
    return text


def _node(value: Any) -> Any:
    """`value` as a YAML node. By way of text, which is the one documented way from values to nodes."""
    return yaml.compose(yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=2**31 - 1), Loader=_Loader)
