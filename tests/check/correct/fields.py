"""Controllers that write fields: applied, patched, counted, merged with others' and reloaded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Any, ClassVar

import steersman as sm
from tests.check.correct.children import CONFIG, SECRET, is_going, secret
from tests.check.models import config, controller, key

DEPLOYMENT = "apps/v1/Deployment"
TEAM = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: teams.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Team, plural: teams, singular: team}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {label: {type: string}}}
          status: {type: object, properties: {members: {type: integer}, observedGeneration: {type: integer}}}
"""
TEAMS = "example.com/v1/Team"


class Counts(sm.Controller):
    """Says in the status of a Team how many Secrets have its label."""

    kind = TEAMS
    watches: ClassVar[Mapping[str, Any]] = {SECRET: lambda found: ()}

    def map_event(self, event: Any, find: Any) -> list[sm.Key]:
        """A Team; of a Secret, the Teams of the labels it has and had, which are called so."""
        if event.key.kind == "Team":
            return [event.key]
        versions = [obj.meta.value for obj in (event.old, event.new) if obj is not None]
        names = {(meta.get("labels") or {}).get("team", "") for meta in versions}
        return [sm.Key("example.com", "Team", event.key.namespace, name) for name in sorted(names) if name]

    def reconcile(self, c: Any, at: sm.Key) -> None:
        team = c.get(at)
        if team is None:
            return
        members = len(c.list(SECRET, at.namespace, labels=f"team={at.name}"))
        status = {"members": members, "observedGeneration": team["metadata"]["generation"]}
        if dict(team.get("status") or {}) != status:
            c.patch_status(at, status)


def aggregated_status() -> sm.Scenario:
    w = sm.Scenario().kind(TEAM).run(Counts)
    team = w.apply(
        {"apiVersion": "example.com/v1", "kind": "Team", "metadata": {"name": "red"}, "spec": {"label": "x"}}
    )
    w.apply(secret("one", metadata={"labels": {"team": "red"}}))
    other = w.apply(secret("two", metadata={"labels": {"team": "blue"}}))
    w.user("move", lambda c: c.patch(other, {"metadata": {"labels": {"team": "red"}}}))
    return w.converges(lambda s: not s[team] or s[team].status.members == s.count(SECRET, labels={"team": "red"}))


class Applies(sm.Controller):
    """Applies a Deployment for a ConfigMap: its own fields and no others, so that the number of replicas stays with
    whoever sets it."""

    kind = CONFIG
    watches: ClassVar[Mapping[str, Any]] = {DEPLOYMENT: lambda found: [key(found["metadata"]["name"])]}

    def reconcile(self, c: Any, at: sm.Key) -> None:
        wanted = c.get(at)
        if wanted is None or is_going(wanted) or "image" not in (wanted.get("data") or ()):
            return
        labels = {"app": at.name}
        pod = {"containers": [{"name": "web", "image": wanted["data"]["image"]}]}
        spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
        meta = {"name": at.name, "namespace": at.namespace}
        found = c.get(c.key(DEPLOYMENT, at.name, at.namespace))
        if found is None or found["spec"]["template"]["spec"]["containers"][0]["image"] != wanted["data"]["image"]:
            c.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}, force=True)


def server_side_apply() -> sm.Scenario:
    w = sm.Scenario().run(Applies)
    wanted = w.apply(config("a", image="web:1"))
    web = sm.Key("apps", "Deployment", "default", "a")
    w.user("upgrade", lambda c: c.patch(wanted, {"data": {"image": "web:2"}}))

    def scale(c: Any) -> None:
        with suppress(sm.NotFound):
            c.patch(web, {"spec": {"replicas": 3}})

    w.user("scale", scale)

    def applied(s: sm.State) -> bool:
        image = (s[wanted].data or {}).get("image")
        return not image or s[web].spec.template.spec.containers[0].image == image

    return w.converges(applied)


def merging(name: str) -> type[sm.Controller]:
    """A controller that keeps its name in a list it shares with others: a Conflict is tried again, a few times."""

    def join(c: Any, at: sm.Key) -> None:
        for attempt in range(3):
            found = c.get(at, fresh=True)
            if at.name != "members" or found is None or is_going(found) or found.get("immutable"):
                return
            names = ((found.get("data") or {}).get("names") or "").split()
            if name in names:
                return
            try:
                c.update({**found, "data": {**(found.get("data") or {}), "names": " ".join(sorted({*names, name}))}})
                return
            except sm.Conflict:
                if attempt == 2:
                    raise

    return controller(name, join)


def conflict_retry() -> sm.Scenario:
    w = sm.Scenario().run(merging("one"), merging("two"))
    shared = w.apply(config("members", names=""))
    w.user("join", lambda c: c.create(config("other")))

    def both(s: sm.State) -> bool:
        names = ((s[shared].data or {}).get("names") or "").split()
        return not s[shared] or bool(s[shared].immutable) or {"one", "two"} <= set(names)

    return w.converges(both)


class Patches(sm.Controller):
    """Labels ConfigMaps by their size, with a JSON patch that tests the version it was computed from."""

    kind = CONFIG

    def reconcile(self, c: Any, at: sm.Key) -> None:
        found = c.get(at)
        if found is None or is_going(found):
            return
        labels = found["metadata"].get("labels") or {}
        size = str(len(found.get("data") or ()))
        if labels.get("size") != size:
            c.patch(
                at,
                [
                    {"op": "test", "path": "/metadata/resourceVersion", "value": found["metadata"]["resourceVersion"]},
                    {"op": "add", "path": "/metadata/labels", "value": {**labels, "size": size}},
                ],
            )


def json_patch() -> sm.Scenario:
    w = sm.Scenario().run(Patches)
    at = w.apply(config("a", x="1"))
    w.user("grow", lambda c: c.patch(at, {"data": {"y": "2"}}))
    w.user("label", lambda c: c.patch(at, {"metadata": {"labels": {"mine": "yes"}}}))
    return w.converges(lambda s: not s[at] or s[at].metadata.labels["size"] == str(len(s[at].data or ())))


def digest_of(content: Any) -> str:
    """A digest of what a ConfigMap holds."""
    return sha256(json.dumps(dict(content.get("data") or {}), sort_keys=True).encode()).hexdigest()


class Reloads(sm.Controller):
    """Restarts a Deployment when a ConfigMap that it mounts has changed: by an annotation with the content's digest."""

    kind = DEPLOYMENT
    watches: ClassVar[Mapping[str, Any]] = {CONFIG: lambda found: ()}

    def map_event(self, event: Any, find: Any) -> list[sm.Key]:
        """A Deployment; the one that mounts a ConfigMap is called as it is."""
        return [sm.Key("apps", "Deployment", event.key.namespace, event.key.name)]

    def reconcile(self, c: Any, at: sm.Key) -> None:
        web, content = c.get(at), c.get(c.key(CONFIG, at.name, at.namespace))
        if web is None or content is None or is_going(web):
            return
        now = digest_of(content)
        if (web["spec"]["template"]["metadata"].get("annotations") or {}).get("content") != now:
            c.patch(at, {"spec": {"template": {"metadata": {"annotations": {"content": now}}}}})


def hot_reload() -> sm.Scenario:
    w = sm.Scenario().run(Reloads)
    content = w.apply(config("web", v="1"))
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
    meta = {"name": "web", "namespace": "default"}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    web = w.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec})
    w.user("change", lambda c: c.patch(content, {"data": {"v": "2"}}))

    def reloaded(s: sm.State) -> bool:
        notes = s[web].spec.template.metadata.annotations or {}
        return not (s[web] and s[content]) or notes.get("content") == digest_of(s[content])

    return w.converges(reloaded)


EVERY = (aggregated_status, server_side_apply, conflict_retry, json_patch, hot_reload)
