"""The list of built-in controllers."""

import pytest

from steersman.api.controller import Controller
from steersman.controllers.builtin import builtin, replacing
from steersman.controllers.deployment import Deployment
from steersman.controllers.replicaset import ReplicaSet


class Surge(Controller):
    kind = "apps/v1/Deployment"


def test_all_some_and_one_replaced():
    assert Deployment in builtin() and builtin("replicaset") == [ReplicaSet]
    changed = replacing("deployment", Surge)
    assert Surge in changed and Deployment not in changed and len(changed) == len(builtin())


def test_an_unknown_name_is_told_with_the_known_ones():
    with pytest.raises(LookupError, match=r"no built-in controller 'deploy'; there are [a-z, -]*deployment, "):
        replacing("deploy", Surge)
