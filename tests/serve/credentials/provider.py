"""A small OpenID provider over TLS, which stands alone: it describes itself, shows its keys, and signs tokens."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

DISCOVERY = "/.well-known/openid-configuration"
RSA_KEYS = [rsa.generate_private_key(65537, 2048) for _ in range(2)]


def text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def number(value: int, size: int = 0) -> str:
    return text(value.to_bytes(size or (value.bit_length() + 7) // 8, "big"))


class Provider:
    """`url` is its name; `seen` the paths it was asked for; `answers` replaces what it says to a path."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self.seen: list[str] = []
        self.answers: dict[str, tuple[int, bytes]] = {}
        self.keys: dict[str, Any] = {"first": RSA_KEYS[0], "curve": ec.generate_private_key(ec.SECP256R1())}
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"https://localhost:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def answer(self, path: str) -> tuple[int, bytes]:
        if path in self.answers:
            return self.answers[path]
        if path == DISCOVERY:
            return 200, json.dumps({"issuer": self.url, "jwks_uri": f"{self.url}/keys"}).encode()
        if path == "/keys":
            return 200, json.dumps({"keys": [_jwk(name, key) for name, key in self.keys.items()]}).encode()
        return 404, b"{}"

    def token(self, claims: dict[str, Any], kid: str = "first", alg: str = "", **header: Any) -> str:
        key = self.keys[kid]
        alg = alg or ("ES256" if isinstance(key, ec.EllipticCurvePrivateKey) else "RS256")
        head = {"alg": alg, "kid": kid, **header}
        signed = ".".join(text(json.dumps(part).encode()) for part in (head, {"iss": self.url, **claims}))
        return f"{signed}.{text(signature(key, alg, signed.encode()))}"

    def forged(self, claims: dict[str, Any], **header: Any) -> str:
        """Signed by a key that is known, whatever the header says."""
        signed = ".".join(
            text(json.dumps(part).encode())
            for part in ({"alg": "RS256", "kid": "first", **header}, {"iss": self.url, **claims})
        )
        return f"{signed}.{text(signature(RSA_KEYS[0], 'RS256', signed.encode()))}"


def signature(key: Any, alg: str, data: bytes) -> bytes:
    digest = {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}[alg[2:]]
    if isinstance(key, ec.EllipticCurvePrivateKey):
        size = (key.curve.key_size + 7) // 8
        return b"".join(part.to_bytes(size, "big") for part in decode_dss_signature(key.sign(data, ec.ECDSA(digest))))
    if alg.startswith("PS"):
        return key.sign(data, padding.PSS(padding.MGF1(digest), digest.digest_size), digest)
    return key.sign(data, padding.PKCS1v15(), digest)


def _jwk(name: str, key: Any) -> dict[str, str]:
    numbers = key.public_key().public_numbers()
    if isinstance(key, ec.EllipticCurvePrivateKey):
        size = (key.curve.key_size + 7) // 8
        crv = {256: "P-256", 384: "P-384", 521: "P-521"}[key.curve.key_size]
        return {"kty": "EC", "kid": name, "crv": crv, "x": number(numbers.x, size), "y": number(numbers.y, size)}
    return {"kty": "RSA", "kid": name, "use": "sig", "n": number(numbers.n), "e": number(numbers.e)}


def _handler(provider: Provider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            provider.seen.append(self.path)
            code, body = provider.answer(self.path)
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler
