"""Tokens of service accounts."""

from __future__ import annotations

from typing import Final

ISSUER: Final = "https://kubernetes.default.svc.cluster.local"
"""Who issues tokens, and whom they are for unless another audience is asked for (kubeadm's default for both)."""
