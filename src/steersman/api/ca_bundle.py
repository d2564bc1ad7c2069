"""caBundle: the authorities that a webhook's certificate may come from, PEM in base64.

Source of the facts: client-go 0.36, `transport/transport.go` (rootCertPool), texts included.
"""

from __future__ import annotations

import base64
import binascii
import re
from functools import lru_cache
from typing import Any, Final

_BLOCK: Final = re.compile(r"-----BEGIN ([^-\n]+)-----\r?\n(.*?)-----END \1-----", re.DOTALL)
_NONE: Final = "unable to load root certificates: unable to parse bytes as PEM block"


@lru_cache(maxsize=64)
def fault(bundle: Any) -> str:
    """Why a bundle cannot be used; "" when it can, or when there is none."""
    if not bundle:
        return ""
    try:
        text = base64.b64decode(bundle, validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError, TypeError):
        return _NONE
    if not text.strip():
        return ""
    from cryptography import x509  # slow to load, and few processes see a bundle

    blocks = list(_BLOCK.finditer(text))
    problem = ""
    for block in blocks:
        if block[1] != "CERTIFICATE" or ":" in block[2]:  # with headers it is none of those that are taken
            continue
        try:
            x509.load_pem_x509_certificate(block[0].encode())
        except ValueError as error:
            problem = problem or f"unable to load root certificates: failed to parse certificate: {error}"
            continue
        return ""
    return problem or _NONE
