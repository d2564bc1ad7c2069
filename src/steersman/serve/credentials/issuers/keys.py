"""The public keys of an issuer (RFC 7517), and whether one of them signed a token (RFC 7515, RFC 7518)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from steersman.api.access.jose import unb64

MAX_KEYS: Final = 100
"""Keys of one issuer that are looked at: real ones have two to ten."""
MIN_RSA: Final = 2048
"""Bits that RFC 7518 demands."""
MAX_RSA: Final = 8192
"""Bits: a check of more would take long."""
_HASHES: Final[Mapping[str, type[hashes.HashAlgorithm]]] = {
    "256": hashes.SHA256, "384": hashes.SHA384, "512": hashes.SHA512,
}  # fmt: skip
_CURVES: Final[Mapping[str, tuple[str, ec.EllipticCurve, int]]] = {
    "P-256": ("ES256", ec.SECP256R1(), 32), "P-384": ("ES384", ec.SECP384R1(), 48),
    "P-521": ("ES512", ec.SECP521R1(), 66),
}  # fmt: skip
ALGORITHMS: Final = ("ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512")
"""What kube-apiserver takes; each is bound to the type of its key."""


class Key(NamedTuple):
    """One key, and what it may have signed."""

    name: str
    algorithms: tuple[str, ...]
    public: rsa.RSAPublicKey | ec.EllipticCurvePublicKey
    half: int = 0
    """Bytes of each half of a signature by a curve."""


def read_keys(document: Any) -> tuple[Key, ...]:
    """The keys of a JSON Web Key Set that can be used; others are passed over. Raises ValueError."""
    listed = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise ValueError("the key set has no keys")
    found = [_key(each) for each in listed[:MAX_KEYS] if isinstance(each, dict)]
    return tuple([key for key in found if key is not None])


def _key(given: Mapping[str, Any]) -> Key | None:
    if given.get("use") not in (None, "", "sig"):
        return None
    try:
        key = _rsa(given) if given.get("kty") == "RSA" else _curve(given) if given.get("kty") == "EC" else None
    except (ValueError, TypeError, AttributeError, KeyError, UnsupportedAlgorithm):
        return None
    if key is None or not given.get("alg"):
        return key
    return key._replace(algorithms=tuple([one for one in key.algorithms if one == given["alg"]]))


def _rsa(given: Mapping[str, Any]) -> Key | None:
    modulus, exponent = (int.from_bytes(unb64(given[part]), "big") for part in ("n", "e"))
    if not MIN_RSA <= modulus.bit_length() <= MAX_RSA or exponent.bit_length() > 32:
        return None
    public = rsa.RSAPublicNumbers(exponent, modulus).public_key()
    return Key(str(given.get("kid") or ""), tuple([one for one in ALGORITHMS if one[:2] != "ES"]), public)


def _curve(given: Mapping[str, Any]) -> Key | None:
    algorithm, curve, half = _CURVES[given["crv"]]
    x, y = (int.from_bytes(unb64(given[part]), "big") for part in ("x", "y"))
    return Key(str(given.get("kid") or ""), (algorithm,), ec.EllipticCurvePublicNumbers(x, y, curve).public_key(), half)


def signed_by(key: Key, algorithm: str, text: bytes, signature: bytes) -> bool:
    """Whether a key signed a text that way."""
    if algorithm not in key.algorithms:
        return False
    digest = _HASHES[algorithm[2:]]()
    try:
        if isinstance(key.public, ec.EllipticCurvePublicKey):
            if len(signature) != 2 * key.half:
                return False
            r, s = (int.from_bytes(part, "big") for part in (signature[: key.half], signature[key.half :]))
            key.public.verify(encode_dss_signature(r, s), text, ec.ECDSA(digest))
        elif algorithm.startswith("RS"):
            key.public.verify(signature, text, padding.PKCS1v15(), digest)
        else:
            pss = padding.PSS(padding.MGF1(digest), padding.PSS.AUTO)
            key.public.verify(signature, text, pss, digest)
    except InvalidSignature:
        return False
    return True
