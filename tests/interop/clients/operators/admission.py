"""An operator with admission webhooks; `certified.py` says where they are served."""

import kopf

PLACE = ("example.com", "v1", "examples")


@kopf.on.startup()
def configure(settings, **_):
    settings.peering.standalone = True
    settings.admission.managed = "auto.example.com"


@kopf.on.validate(*PLACE)
def refuses(spec, warnings, dryrun, **_):
    if spec.get("colour") == "grey":
        raise kopf.AdmissionError("grey is no colour", code=418)
    if spec.get("colour") == "pink":
        warnings.append("pink is a tint" + (" (dry run)" if dryrun else ""))


@kopf.on.validate(*PLACE, subresource="status", operations={"UPDATE"})
def guards_the_status(status, **_):
    if status.get("state") == "lost":
        raise kopf.AdmissionError("nothing is ever lost")


@kopf.on.mutate(*PLACE, labels={"kind": "mutated"}, operations={"CREATE"})
def fills_in(patch, userinfo, **_):
    patch.spec["by"] = userinfo["username"]
