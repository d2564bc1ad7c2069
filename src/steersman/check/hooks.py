"""Webhooks in a check: models of them, each call an Action of its own."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import orjson

from steersman.api.admission.hook import Hook
from steersman.check.guard import guarded
from steersman.check.mistake import ScenarioError
from steersman.check.signing import signed
from steersman.kernel.value import freeze, thaw

UID = "model"
"""The uid of every review: models know no other, and two equal questions are one."""
ANSWERED = ("allowed", "status", "warnings", "patch", "auditAnnotations")


class HookModels:
    """The webhooks of one scenario by name. `call` answers the kernel's Calls."""

    def __init__(self) -> None:
        self._models: dict[str, Callable[[Any], Any]] = {}

    def add(self, name: str, model: Callable[[Any], Any]) -> None:
        """Registers a model."""
        self._models[name] = model

    def call(self, kind: str, question: Any) -> Any:
        """The answers of the models, or what stands for a signature. Raises `ScenarioError`."""
        if kind == "sign":
            return signed(question)
        return [self._converted(hook) if kind == "convert" else self._answer(hook) for hook in question]

    def _converted(self, hook: Hook) -> dict[str, Any]:
        """The answer of a model of a conversion webhook."""
        said = self._said(hook)
        objects = said if isinstance(said, list) else None
        if objects is None or len(objects) != len(hook.review["request"]["objects"]):
            raise ScenarioError(
                f"the model of {hook.name!r} gave {said!r}; give a list with each of request.objects, converted"
            )
        response = {"uid": UID, "convertedObjects": thaw(freeze(objects)), "result": {"status": "Success"}}
        return {"apiVersion": hook.review["apiVersion"], "kind": "ConversionReview", "response": response}

    def _said(self, hook: Hook) -> Any:
        model = self._models.get(hook.name)
        if model is None:
            raise ScenarioError(f"the webhook {hook.name!r} is called; model it with w.webhook({hook.name!r}, model)")
        try:
            return guarded(f"the model of the webhook {hook.name!r}", model)(freeze(hook.review["request"]))
        except ScenarioError:
            raise
        except Exception as error:
            raise ScenarioError(
                f"the model of the webhook {hook.name!r} failed: {type(error).__name__}: {error}"
            ) from error

    def _answer(self, hook: Hook) -> dict[str, Any]:
        said = self._said(hook)
        if said is not None and (not isinstance(said, dict) or not set(said) <= set(ANSWERED)):
            raise ScenarioError(
                f"the model of the webhook {hook.name!r} gave {said!r}; give None or {', '.join(ANSWERED)}"
            )
        response = {"uid": UID, "allowed": True, **(said or {})}
        if isinstance(response.get("patch"), list):
            response["patchType"] = "JSONPatch"
            response["patch"] = base64.b64encode(orjson.dumps(response["patch"])).decode()
        return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
