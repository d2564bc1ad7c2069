"""A namespace of the test's own control plane, as a client finds it."""

import pytest

from tests.interop.clients.samples import NAMESPACE
from tests.interop.patience import SECONDS


@pytest.fixture
def namespace(control_plane):
    """`default`, once pods may be made in it: the controllers have given it its service account."""
    c = control_plane.client
    account = c.key("v1/ServiceAccount", "default", NAMESPACE)
    c.wait(lambda: c.get(account) is not None, SECONDS, "the service account `default`")
    return NAMESPACE


@pytest.fixture
def compact(control_plane):
    """Forgets old revisions, as etcd's compaction does: watches and continue tokens from before are 410 afterwards."""

    def forget(client_writes, times=3):
        control_plane.heads._changes.max_events = 1
        for _ in range(times):
            client_writes()

    return forget
