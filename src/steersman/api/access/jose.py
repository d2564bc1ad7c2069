"""How parts of signed tokens are written: base64 for URLs, without padding (RFC 7515, section 2)."""

from __future__ import annotations

import base64


def b64(data: bytes) -> str:
    """Bytes as text."""
    return base64.urlsafe_b64encode(data).decode("ascii").rstrip("=")


def unb64(text: str) -> bytes:
    """The bytes of a text. Strict: what a second spelling of a token would decode to is no token. Raises ValueError."""
    data = base64.b64decode(text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4), validate=True)
    if b64(data) != text:
        raise ValueError("not in canonical form")
    return data
