"""An operator of kopf's plain handlers: what happens to an object is written down in its status or its annotations."""

import kopf

PLACE = ("example.com", "v1", "examples")


@kopf.on.startup()
def configure(settings, **_):
    # A wait for consistency would be over after the test is: the test sees that there never was one.
    settings.persistence.consistency_timeout = 1000
    settings.posting.loggers = True
    settings.peering.standalone = True


@kopf.on.create(*PLACE, labels={"kind": "plain"})
def created(spec, body, **_):
    kopf.info(body, reason="Welcomed", message="as an event of its own")
    return {"colour": spec.get("colour")}


@kopf.on.update(*PLACE, labels={"kind": "plain"})
def updated(diff, **_):
    return {"fields": [".".join(path) for _op, path, _old, _new in diff]}


@kopf.on.field(*PLACE, field="spec.colour", labels={"kind": "plain"})
def coloured(old, new, **_):
    return {"from": old, "to": new}


@kopf.on.delete(*PLACE, labels={"kind": "plain"})
def deleted(name, retry, **_):
    if retry == 0:
        raise kopf.TemporaryError("not yet", delay=0.1)
    print("told: deleted", name)  # the object is gone: the test reads the output


@kopf.on.resume(*PLACE, labels={"kind": "resumed"})
def resumed(**_):
    return "found at the start"


@kopf.on.create(*PLACE, labels={"kind": "failing"})
def fails_for_good(**_):
    raise kopf.PermanentError("never")


@kopf.on.create(*PLACE, labels={"kind": "failing"})
def fails_twice(retry, **_):
    if retry < 2:
        raise kopf.TemporaryError("try again", delay=0.1)
    return {"retry": retry}


@kopf.on.create(*PLACE, labels={"kind": "failing"}, retries=2, backoff=0.1)
def fails_always(**_):
    raise ValueError("unexpected")


@kopf.on.event(*PLACE, labels={"kind": "event"})
def seen(event, name, **_):
    print("told:", event["type"], name)


@kopf.on.create(*PLACE, labels={"kind": "parts"})
def in_parts(spec, **_):
    for item in spec.get("items", []):

        @kopf.subhandler(id=item)
        def part(item=item, **_):
            return f"made {item}"


@kopf.on.create(*PLACE, annotations={"colour": kopf.PRESENT}, when=lambda spec, **_: spec.get("wanted"))
def filtered(**_):
    return "wanted"


@kopf.on.create(*PLACE, labels={"kind": "filtered"}, annotations={"colour": kopf.ABSENT})
def without_annotation(**_):
    return "absent"


@kopf.on.create(*PLACE, labels={"kind": "parent"})
def with_a_child(**_):
    child = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"made": "by kopf"}}
    kopf.adopt(child)
    return {"child": child["metadata"]}
