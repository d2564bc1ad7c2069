"""A webhook to be called: the question the face is asked, and what it may answer.

A `Call("webhook", ...)` asks about a tuple of `Hook`s and is answered with a list of as many answers, in their order:
the JSON of the AdmissionReview that came back, or `{"unanswered": WHY, "timedOut": BOOL}`. Whoever performs the call
sets `request.uid` to something unique and refuses an answer with another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

MAX_TIMEOUT: Final = 30
"""Seconds a webhook may take at most (Kubernetes' limit)."""
DEFAULT_TIMEOUT: Final = 10


class Hook(NamedTuple):
    """One webhook, and what it is asked."""

    name: str
    url: str
    """Where: https://host:port/path. "" when `fault` says that there is nowhere."""
    host: str
    """The name its certificate must have."""
    ca_bundle: str
    """PEM in base64; "": the system's authorities."""
    timeout: int
    """Seconds."""
    review: Mapping[str, Any]
    """The AdmissionReview or ConversionReview, `request` without uid."""
    fault: str = ""
    addresses: tuple[str, ...] = ()
    """HOST:PORT of the endpoints that answer for the URL; whoever calls takes them in turn. (): the URL's own host."""
