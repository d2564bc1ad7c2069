"""The list of built-in controllers."""

import pytest

from steersman.api.controller import Controller
from steersman.controllers.builtin import builtin, remaining, replacing
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


def test_what_is_left_when_some_are_disabled_by_the_names_of_kubernetes():
    every = remaining([])
    left = remaining(["deployment-controller", "replicaset", "serviceaccount-token-controller"])
    gone = {cls.name for cls in every} - {cls.name for cls in left}
    assert gone == {"deployment", "replicaset", "tokens-controller"} and remaining(["*"]) == []
    with pytest.raises(LookupError, match="no built-in controller 'deploy'"):
        remaining(["deploy"])
