"""A small aggregated API server: `wardle.example.com/v1alpha1` with flunders, over TLS, behind the front proxy.

It stands alone (nothing of Steersman is in it), and does what extension API servers do: it demands a certificate of the
request header authority, and takes the user from the X-Remote headers.
"""

from __future__ import annotations

import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

GROUP, VERSION = "wardle.example.com", "v1alpha1"
ROOT = f"/apis/{GROUP}/{VERSION}"
VERBS = ["create", "delete", "get", "list", "watch"]


SPEC: dict[str, Any] = {
    "swagger": "2.0",
    "info": {"title": "Wardle", "version": "0"},
    "paths": {
        f"{ROOT}/flunders": {
            "get": {
                "operationId": "listFlunder",
                "responses": {"200": {"description": "OK", "schema": {"$ref": "#/definitions/example.Flunder"}}},
            },
            "parameters": [{"$ref": "#/parameters/pretty"}],
        },
        "/api/v1/secrets": {"get": {"responses": {"200": {"description": "not theirs to describe"}}}},
    },
    "definitions": {
        "example.Flunder": {
            "type": "object",
            "properties": {
                "metadata": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"},
                "pod": {"$ref": "#/definitions/io.k8s.api.core.v1.Pod"},
            },
        },
        "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {"type": "object", "description": "another one"},
        "io.k8s.api.core.v1.Pod": {"type": "object"},
        "example.Unused": {"type": "object"},
    },
    "parameters": {"pretty": {"name": "pretty", "in": "query", "type": "string"}},
}


class Wardle:
    """The running server. `seen` has every request: method, path, user, groups, headers."""

    def __init__(
        self, certificate: Path, key: Path, requestheader_ca: Path, allowed: str = "front-proxy-client"
    ) -> None:
        self.flunders: dict[str, Any] = {}
        self.seen: list[tuple[str, str, str, list[str], dict[str, str]]] = []
        self.healthy = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        context.load_verify_locations(requestheader_ca)
        context.verify_mode = ssl.CERT_REQUIRED
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def _handler(wardle: Wardle) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: Any) -> None:
            pass

        def answer(self, code: int, body: Any, **headers: str) -> None:
            data = json.dumps(body).encode()
            self.send_response(code)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except (OSError, ssl.SSLError):
                self.close_connection = True

        def do(self) -> None:
            certificate = self.connection.getpeercert()  # type: ignore[attr-defined]
            names = [value for part in certificate["subject"] for key, value in part if key == "commonName"]
            if names != ["front-proxy-client"]:
                self.answer(401, {"kind": "Status", "message": "not the front proxy"})
                return
            user, groups = self.headers["X-Remote-User"], self.headers.get_all("X-Remote-Group") or []
            size = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(size)
            wardle.seen.append((self.command, self.path, user, groups, dict(self.headers)))
            path, _, query = self.path.partition("?")
            if not wardle.healthy:
                self.answer(500, {"kind": "Status"})
            elif path == ROOT:
                self.answer(200, RESOURCES)
            elif path == "/openapi/v3":
                self.answer(200, {"paths": {ROOT[1:]: {"serverRelativeURL": f"/openapi/v3{ROOT}?hash=1"}}})
            elif path == f"/openapi/v3{ROOT}":
                self.answer(200, {"openapi": "3.0.0", "info": {"title": "Wardle", "version": "0"}, "paths": {}})
            elif path == "/openapi/v2":
                self.answer(200, SPEC)
            elif path == f"{ROOT}/moved":
                self.answer(302, {}, Location="https://elsewhere.example.com/")
            elif path == f"{ROOT}/namespaces/default/flunders" and self.command == "POST":
                flunder = json.loads(body)
                wardle.flunders[flunder["metadata"]["name"]] = flunder
                self.answer(201, flunder)
            elif path.endswith("/flunders") and "watch=" in query:
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for flunder in wardle.flunders.values():
                    line = json.dumps({"type": "ADDED", "object": flunder}).encode() + b"\n"
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                self.wfile.write(b"0\r\n\r\n")
            elif path.endswith("/flunders"):
                items = list(wardle.flunders.values())
                self.answer(
                    200, {"kind": "FlunderList", "apiVersion": f"{GROUP}/{VERSION}", "metadata": {}, "items": items}
                )
            else:
                self.answer(404, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404})

        do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do

    return Handler


RESOURCES = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": f"{GROUP}/{VERSION}",
    "resources": [
        {"name": "flunders", "singularName": "flunder", "namespaced": True, "kind": "Flunder", "verbs": VERBS},
        {"name": "flunders/status", "singularName": "", "namespaced": True, "kind": "Flunder", "verbs": ["get"]},
    ],
}
