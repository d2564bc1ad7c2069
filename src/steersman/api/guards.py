"""What stands around the ordinary machine for a few kinds: checks of who writes, and parts that somebody else fills in.

One dictionary look-up for a write of any other kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from steersman.api.access import certificates, escalation, token_request
from steersman.api.access.authz import Rbac
from steersman.api.access.machine import Machine
from steersman.api.kinds import Kind
from steersman.kernel.effect import GK, Outcome, Request
from steersman.kernel.store import Store

Guard = Callable[[Rbac, Store, Request, Outcome], Outcome]
Fill = Callable[[Machine, Store, Request, Kind], Outcome]

GUARDS: Final[Mapping[GK, Guard]] = {
    **dict.fromkeys(escalation.GUARDED, escalation.guarded),
    certificates.CSR: certificates.guarded,
}
"""Kind to what judges the outcome of a write before it is committed."""
FILLED: Final[Mapping[tuple[GK, str], Fill]] = {
    (token_request.ACCOUNT, "token"): token_request.request_token,
    (token_request.SECRET, "token"): token_request.fill_secret,
    (certificates.CSR, "autoapproval"): certificates.approve,
    (certificates.CSR, "certificate"): certificates.sign,
}
"""Subresources whose creation asks for something signed or decided. Only the first is a route of the HTTP face."""
