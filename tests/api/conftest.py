"""What the tests of the request machine share."""

import pytest

from tests.api.cluster import Cluster


@pytest.fixture
def cluster():
    """An empty cluster with the namespace `shop`."""
    made = Cluster()
    made.create("v1/Namespace", "shop")
    return made
