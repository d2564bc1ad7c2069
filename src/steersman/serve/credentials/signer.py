"""The key that signs service accounts' tokens: ES256 JSON Web Tokens, and their verification.

The key lives in `sa.key` (PKCS #8, mode 0600) beside the authority's, and outlives a restart, so that tokens do. What
is asked and answered: `kernel.ports.Signer`. Formats: RFC 7515 and 7517; the key's name is, as in Kubernetes, the
digest of its public half.
"""

from __future__ import annotations

import binascii
import hashlib
from collections import OrderedDict
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from steersman.api import errors
from steersman.api.access.jose import b64, unb64
from steersman.serve.credentials.issue import sign_request
from steersman.serve.credentials.tls import Authority
from steersman.serve.files import FileError, locked, private_directory, read_file, write_file

HALF: Final = 32
"""Bytes of each half of a P-256 signature."""
MAX_TOKEN: Final = 16 << 10
"""Characters: a token with a hundred audiences is below it."""
VERIFIED: Final = 2048
"""Claims of verified tokens that are kept, so that a request does not pay for a signature (some 100 us) again."""
KEY_FILE: Final = "sa.key"


class Signer:
    """Signs with a key of its own, and with a certificate authority where there is one."""

    def __init__(self, key: ec.EllipticCurvePrivateKey | None = None, authority: Authority | None = None) -> None:
        """Without a key it makes one, which is gone with the process."""
        self.authority = authority
        self._key = key or ec.generate_private_key(ec.SECP256R1())
        numbers = self._key.public_key().public_numbers()
        form, info = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        der = self._key.public_key().public_bytes(form, info)
        self.key_id = b64(hashlib.sha256(der).digest())
        self._header = b64(orjson.dumps({"alg": "ES256", "kid": self.key_id}))
        self._point = (b64(numbers.x.to_bytes(HALF, "big")), b64(numbers.y.to_bytes(HALF, "big")))
        self._verified: OrderedDict[bytes, dict[str, Any]] = OrderedDict()

    @classmethod
    def open(cls, directory: Path, authority: Authority | None = None) -> Signer:
        """With the key in `directory`, which is made if there is none. Raises FileError."""
        path = directory / KEY_FILE
        private_directory(directory)
        with locked(directory):
            try:
                data = read_file(path, private=True)
            except FileNotFoundError:
                key = ec.generate_private_key(ec.SECP256R1())
                form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
                write_file(path, key.private_bytes(serialization.Encoding.PEM, form, plain), 0o600)
                return cls(key, authority)
        try:
            found = serialization.load_pem_private_key(data, password=None)
        except (ValueError, TypeError):
            found = None
        if not isinstance(found, ec.EllipticCurvePrivateKey) or not isinstance(found.curve, ec.SECP256R1):
            raise FileError(f"{path} is not a P-256 private key; remove it to begin a new one (tokens end with it)")
        return cls(found, authority)

    def of_tokens_alone(self) -> Signer:
        """The same key without the authority."""
        return Signer(self._key)

    def __repr__(self) -> str:
        return f"Signer({self.key_id})"

    def sign(self, kind: str, payload: bytes) -> str:
        """The answer to `Call("sign", (kind, payload))`. Raises ApiError 500 for what nobody can sign."""
        if kind == "token":
            return self._token(payload)
        if kind == "certificate" and self.authority is not None:
            return sign_request(self.authority, payload).decode("ascii")
        raise errors.internal(f"nobody here signs a {kind}")

    def _token(self, claims: bytes) -> str:
        signed = f"{self._header}.{b64(claims)}"
        r, s = decode_dss_signature(self._key.sign(signed.encode("ascii"), ec.ECDSA(hashes.SHA256())))
        return f"{signed}.{b64(r.to_bytes(HALF, 'big') + s.to_bytes(HALF, 'big'))}"

    def verify(self, token: str) -> dict[str, Any] | None:
        """The claims of a token that this key signed; None for any other text. Nobody has judged them yet."""
        if not has_form(token):
            return None
        digest = hashlib.sha256(token.encode("ascii")).digest()
        found = self._verified.get(digest)
        if found is None:
            found = self._claims(token)
            if found is None:
                return None
            if len(self._verified) >= VERIFIED:
                self._verified.popitem(last=False)
            self._verified[digest] = found
        return found

    def _claims(self, token: str) -> dict[str, Any] | None:
        parts = taken_apart(token)
        if parts is None or len(parts.signature) != 2 * HALF:
            return None
        header, claims, signature = parts
        if header.get("alg") != "ES256" or header.get("kid") != self.key_id or "crit" in header:
            return None
        r, s = int.from_bytes(signature[:HALF], "big"), int.from_bytes(signature[HALF:], "big")
        try:
            der = encode_dss_signature(r, s)
            self._key.public_key().verify(der, token.rpartition(".")[0].encode("ascii"), ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            return None
        return claims

    def key_set(self) -> bytes:
        """The public key as a JSON Web Key Set."""
        key = {"use": "sig", "kty": "EC", "kid": self.key_id, "crv": "P-256", "alg": "ES256"}
        return orjson.dumps({"keys": [{**key, "x": self._point[0], "y": self._point[1]}]})


class Parts(NamedTuple):
    """A token taken apart. Nobody has checked it."""

    header: dict[str, Any]
    claims: dict[str, Any]
    signature: bytes


def has_form(text: str) -> bool:
    """Whether a text may be a token: cheap, whatever the text."""
    return len(text) <= MAX_TOKEN and text.count(".") == 2 and text.isascii()


def taken_apart(text: str) -> Parts | None:
    """The parts of a text of that form; None where it is no token nevertheless."""
    head, body, mark = text.split(".")
    try:
        header, claims = orjson.loads(unb64(head)), orjson.loads(unb64(body))
        signature = unb64(mark)
    except (ValueError, binascii.Error):
        return None
    return Parts(header, claims, signature) if isinstance(header, dict) and isinstance(claims, dict) else None
