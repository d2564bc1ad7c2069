"""What stands for the cluster's authority in a check: the same question has the same answer, in every process."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding

from steersman.kernel.draw import model_call
from steersman.kernel.identity import digest


def signed(question: tuple[str, Any]) -> str:
    """The answer of a `sign` call: for a certificate one in PEM that can be parsed (nobody trusts its issuer), for
    everything else a text."""
    what, payload = question
    return _certificate(payload) if what == "certificate" else str(model_call("sign", question))


def _certificate(payload: Any) -> str:
    """Ed25519 signs the same thing in the same way each time, so a key made of the question makes a certificate of
    it."""
    asked = orjson.loads(payload)
    key = Ed25519PrivateKey.from_private_bytes(digest("authority", payload).to_bytes(32, "big"))
    request = x509.load_pem_x509_csr(asked["request"].encode())
    issuer = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "check")])
    builder = x509.CertificateBuilder(issuer, request.subject, request.public_key())
    builder = builder.serial_number(1 + digest("serial", payload) % 2**64)
    builder = builder.not_valid_before(datetime.fromtimestamp(asked["now"], UTC))
    builder = builder.not_valid_after(datetime.fromtimestamp(asked["now"] + asked["seconds"], UTC))
    return builder.sign(key, None).public_bytes(Encoding.PEM).decode()
