"""An operator that gives way to peers of a higher priority."""

import os

import kopf

PLACE = ("example.com", "v1", "examples")


@kopf.on.startup()
def configure(settings, **_):
    settings.peering.name = "peers"
    settings.peering.mandatory = True
    settings.peering.priority = int(os.environ["PEER_PRIORITY"])
    settings.peering.lifetime = 20


@kopf.on.create(*PLACE)
def created(**_):
    return os.environ["PEER_PRIORITY"]
