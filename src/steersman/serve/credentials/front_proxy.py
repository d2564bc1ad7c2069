"""The certificate by which aggregated API servers know this one, from an authority that signs nothing else.

It has an authority of its own, since whoever has such a certificate may claim to be anybody (Kubernetes documentation,
"Configure the Aggregation Layer").
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import orjson

from steersman.serve.credentials.tls import CA_LIFETIME, Authority
from steersman.serve.files import write_file
from steersman.serve.upstream.aggregator import FrontProxy

DIRECTORY: Final = "front-proxy"
NAME: Final = "front-proxy-client"


def front_proxy(pki: Path) -> tuple[FrontProxy, Authority]:
    """The files, made anew, and who signed them. Raises FileError."""
    authority = Authority.open(pki / DIRECTORY)
    credential = authority.client(NAME, lifetime=CA_LIFETIME)
    files = FrontProxy(authority.directory / "client.crt", authority.directory / "client.key")
    write_file(files.key, credential.key, 0o600)
    write_file(files.certificate, credential.certificate, 0o644)
    return files, authority


def published(authority: Authority) -> Mapping[str, str]:
    """What aggregated API servers read in the ConfigMap extension-apiserver-authentication."""

    def listed(*names: str) -> str:
        return orjson.dumps(names).decode()

    return {
        "requestheader-allowed-names": listed(NAME),
        "requestheader-client-ca-file": authority.pem.decode("ascii"),
        "requestheader-extra-headers-prefix": listed("X-Remote-Extra-"),
        "requestheader-group-headers": listed("X-Remote-Group"),
        "requestheader-uid-headers": listed("X-Remote-Uid"),
        "requestheader-username-headers": listed("X-Remote-User"),
    }
