"""Bearer tokens: who they speak for. On disk and in memory there are only their SHA-256 hashes."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from steersman.serve.files import FileError, locked, make_parents, read_file, write_file

# 256 bits: a plain hash of such a token cannot be searched, so no slow hash is needed on every request.
TOKEN_BYTES = 32
# A look-up compares with every hash, so that its time tells nothing; 1,000 take 0.2 ms.
MAX_TOKENS = 1000
# A token is 43 characters; longer ones of other makers are not ours, and hashing them is work for nothing.
MAX_TOKEN_LENGTH = 4096
VERSION = 1


@dataclass(frozen=True, slots=True)
class Identity:
    """Whom a token speaks for."""

    user: str
    groups: tuple[str, ...] = ()
    uid: str = ""


class Tokens:
    """The tokens of one control plane, by hash."""

    def __init__(self) -> None:
        self._by_hash: dict[bytes, Identity] = {}

    def __len__(self) -> int:
        return len(self._by_hash)

    def __repr__(self) -> str:
        return f"Tokens({len(self)} tokens)"

    def issue(self, user: str, groups: Sequence[str] = ()) -> str:
        """A new token for `user`. It is returned this once and kept nowhere. Raises ValueError when full."""
        token = secrets.token_urlsafe(TOKEN_BYTES)
        self.accept(token, Identity(user, tuple(groups)))
        return token

    def accept(self, token: str, identity: Identity) -> None:
        """Let a token made elsewhere (a kubeconfig's) speak for `identity`. Raises ValueError."""
        if not identity.user:
            raise ValueError("a token needs a user")
        if not token or len(token) > MAX_TOKEN_LENGTH:
            raise ValueError(f"a token has 1 to {MAX_TOKEN_LENGTH} characters")
        if len(self._by_hash) >= MAX_TOKENS and _hash(token) not in self._by_hash:
            raise ValueError(f"there are {MAX_TOKENS} tokens already; revoke some")
        self._by_hash[_hash(token)] = identity

    def identify(self, token: str) -> Identity | None:
        """Whom `token` speaks for, or None. Takes the same time for a wrong token as for a right one."""
        if not token or len(token) > MAX_TOKEN_LENGTH:
            return None
        digest = _hash(token)
        found = None
        for known, identity in self._by_hash.items():
            if hmac.compare_digest(known, digest):
                found = identity
        return found

    def revoke(self, user: str) -> int:
        """Forget every token of `user`; how many there were."""
        gone = [digest for digest, identity in self._by_hash.items() if identity.user == user]
        for digest in gone:
            del self._by_hash[digest]
        return len(gone)

    def entries(self) -> list[tuple[bytes, Identity]]:
        """Hash and identity, ordered by user, then hash."""
        return sorted(self._by_hash.items(), key=lambda item: (item[1].user, item[0]))


def load_tokens(path: Path) -> Tokens:
    """The token store of `path`; an empty one if there is no file.

    Raises FileError for a file that others can read or that is no token store.
    """
    try:
        data = read_file(path, private=True)
    except FileNotFoundError:
        return Tokens()
    tokens = Tokens()
    try:
        document = orjson.loads(data)
        if document["version"] != VERSION:
            raise FileError(f"{path} has version {document['version']!r}; this program reads version {VERSION}")
        for entry in document["tokens"]:
            digest, groups = bytes.fromhex(entry["sha256"]), entry["groups"]
            if len(digest) != 32 or not isinstance(entry["user"], str) or not entry["user"]:
                raise ValueError
            if not isinstance(groups, list) or not all(isinstance(group, str) for group in groups):
                raise ValueError
            tokens._by_hash[digest] = Identity(entry["user"], tuple(groups), str(entry.get("uid", "")))
    except (ValueError, TypeError, KeyError):
        raise FileError(f"{path} is not a token store; name another path, or remove it and issue tokens anew") from None
    return tokens


def save_tokens(path: Path, tokens: Tokens) -> None:
    """Write the store, mode 0600, atomically. Raises FileError."""
    entries = [
        {"sha256": digest.hex(), "user": identity.user, "groups": list(identity.groups), "uid": identity.uid}
        for digest, identity in tokens.entries()
    ]
    document = orjson.dumps({"version": VERSION, "tokens": entries}, option=orjson.OPT_INDENT_2)
    make_parents(path)
    with locked(path.parent):
        write_file(path, document + b"\n", 0o600)


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
