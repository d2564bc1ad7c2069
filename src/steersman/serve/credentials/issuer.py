"""What lets others verify service accounts' tokens: OpenID Connect discovery and the public keys."""

from __future__ import annotations

from typing import Final

import orjson

from steersman.api import errors
from steersman.api.access.token_request import ISSUER
from steersman.serve.credentials.signer import Signer
from steersman.serve.message import Response

CACHED: Final = ("cache-control", "public, max-age=3600")


def answer(segments: list[str], signer: Signer | None, url: str) -> Response:
    """`/openid/v1/jwks` or `/.well-known/openid-configuration`. Raises ApiError 404 where there is no signer."""
    if signer is None:
        raise errors.resource_not_found()
    if segments[0] == "openid":
        return Response(200, (("content-type", "application/jwk-set+json"), CACHED), signer.key_set())
    document = {
        "issuer": ISSUER,
        "jwks_uri": f"{url or ISSUER}/openid/v1/jwks",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    }
    return Response(200, (("content-type", "application/json"), CACHED), orjson.dumps(document))
