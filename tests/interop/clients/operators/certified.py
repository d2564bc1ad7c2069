"""Run beside an operator with admission webhooks: they are served here, with a certificate that the test has made."""

import os
from pathlib import Path

import kopf


@kopf.on.startup()
def serve_webhooks(settings, **_):
    pki = Path(os.environ["WEBHOOK_PKI"])
    settings.admission.server = kopf.WebhookServer(
        addr="127.0.0.1",
        host="127.0.0.1",
        certfile=pki / "server.crt",
        pkeyfile=pki / "server.key",
        cafile=pki / "ca.crt",
    )
