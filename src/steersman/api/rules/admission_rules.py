"""What webhook configurations and admission policies must look like, and their defaults.

Expressions are compiled when they are written, so that nobody learns of a wrong one when a write is judged by it.
Source of the facts: kubernetes `pkg/apis/admissionregistration/{validation,v1}`, release 1.36.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from steersman.api import names
from steersman.api.crd.crd_rules import client_config
from steersman.api.errors import Cause
from steersman.api.filling import each, inside, lacking
from steersman.api.label_select import label_selector_causes
from steersman.api.rules import rules
from steersman.api.rules.rules import Causes, Object, chosen
from steersman.kernel.value import EMPTY, Frozen

if TYPE_CHECKING:
    from steersman.api.admission.expressions import Composed, Expression, Uses

FAILURE: Final = ("Fail", "Ignore")
MATCH: Final = ("Equivalent", "Exact")
SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")
REVIEWS: Final = ("v1", "v1beta1")
OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
MUTATED: Final = ("*", "CONNECT", "CREATE", "UPDATE")
SCOPES: Final = ("*", "Cluster", "Namespaced")
ACTIONS: Final = ("Audit", "Deny", "Warn")
REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge")
MAX_CONDITIONS: Final = 64
MAX_ANNOTATIONS: Final = 20
MAX_VALUE_EXPRESSION: Final = 5 * 1024
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

# -- defaults --------------------------------------------------------------------------------------------------

_SELECTORS: Final = {"matchPolicy": "Equivalent", "namespaceSelector": EMPTY, "objectSelector": EMPTY}
_WEBHOOK: Final = {**_SELECTORS, "failurePolicy": "Fail", "timeoutSeconds": 10}


def _scope(rule: Frozen) -> Frozen:
    return lacking(rule, {"scope": "*"})


def webhook(value: Frozen) -> Frozen:
    """A validating webhook with its defaults."""
    filled = each(lacking(value, _WEBHOOK), "rules", _scope)
    return inside(filled, "clientConfig", lambda c: inside(c, "service", lambda s: lacking(s, {"port": 443})))


def mutating_webhook(value: Frozen) -> Frozen:
    """A mutating webhook with its defaults."""
    return lacking(webhook(value), {"reinvocationPolicy": "Never"})


def _matched(value: Frozen) -> Frozen:
    return each(each(lacking(value, _SELECTORS), "resourceRules", _scope), "excludeResourceRules", _scope)


def policy(spec: Frozen) -> Frozen:
    """The spec of a policy with its defaults."""
    return inside(lacking(spec, {"failurePolicy": "Fail"}), "matchConstraints", _matched)


def binding(spec: Frozen) -> Frozen:
    """The spec of a binding with its defaults."""
    return inside(spec, "matchResources", _matched)


# -- rules -----------------------------------------------------------------------------------------------------


def webhooks(out: Causes, path: str, found: Any) -> None:
    """The webhooks of a configuration."""
    seen: set[str] = set()
    for index, hook in enumerate(found or ()):
        at = f"{path}[{index}]"
        _webhook(out, at, hook)
        name = hook.get("name") or ""
        if name in seen:
            out.append(Cause.duplicate(f"{at}.name", name))
        seen.add(name)


def _webhook(out: Causes, path: str, hook: Object) -> None:
    name = hook.get("name") or ""
    if not name:
        out.append(Cause.required(f"{path}.name"))
    elif problems := rules.dns_subdomain(name):
        out.append(Cause.invalid(f"{path}.name", name, ",".join(problems)))
    elif name.count(".") < 2:
        out.append(
            Cause.invalid(f"{path}.name", name, "should be a domain with at least three segments separated by dots")
        )
    for index, rule in enumerate(hook.get("rules") or ()):
        _rule(out, f"{path}.rules[{index}]", rule)
    chosen(out, f"{path}.failurePolicy", hook.get("failurePolicy"), FAILURE)
    chosen(out, f"{path}.matchPolicy", hook.get("matchPolicy"), MATCH)
    chosen(out, f"{path}.reinvocationPolicy", hook.get("reinvocationPolicy"), ("IfNeeded", "Never"))
    effects = hook.get("sideEffects")
    if effects is None:
        out.append(Cause.required(f"{path}.sideEffects", f"must specify one of {', '.join(SIDE_EFFECTS)}"))
    elif effects not in SIDE_EFFECTS:
        out.append(Cause.unsupported(f"{path}.sideEffects", effects, SIDE_EFFECTS))
    seconds = hook.get("timeoutSeconds")
    if seconds is not None and not 1 <= seconds <= 30:
        out.append(
            Cause.invalid(f"{path}.timeoutSeconds", seconds, "the timeout value must be between 1 and 30 seconds")
        )
    _selectors(out, path, hook)
    client_config(out, f"{path}.clientConfig", hook.get("clientConfig") or EMPTY)
    _conditions(out, f"{path}.matchConditions", hook.get("matchConditions") or (), False)
    _review_versions(out, f"{path}.admissionReviewVersions", hook.get("admissionReviewVersions") or ())


def _review_versions(out: Causes, path: str, versions: Sequence[str]) -> None:
    if not versions:
        out.append(Cause.required(path, f"must specify one of {', '.join(REVIEWS)}"))
        return
    for index, version in enumerate(versions):
        if version in versions[:index]:
            out.append(Cause.invalid(f"{path}[{index}]", version, "duplicate version"))
        else:
            rules.named(out, f"{path}[{index}]", version, names.dns1035_label)
    if not set(versions) & set(REVIEWS):
        out.append(Cause.invalid(path, list(versions), f"must include at least one of {', '.join(REVIEWS)}"))


def _selectors(out: Causes, path: str, given: Object) -> None:
    for field in ("namespaceSelector", "objectSelector"):
        if given.get(field) is not None:
            out += label_selector_causes(given[field], f"{path}.{field}")


def _rule(out: Causes, path: str, rule: Object) -> None:
    operations = rule.get("operations") or ()
    if not operations:
        out.append(Cause.required(f"{path}.operations"))
    if len(operations) > 1 and "*" in operations:
        out.append(
            Cause.invalid(f"{path}.operations", operations, "if '*' is present, must not specify other operations")
        )
    for index, operation in enumerate(operations):
        if operation not in OPERATIONS:
            out.append(Cause.unsupported(f"{path}.operations[{index}]", operation, OPERATIONS))
    for field, what in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        given = rule.get(field) or ()
        if not given:
            out.append(Cause.required(f"{path}.{field}"))
        if len(given) > 1 and "*" in given:
            told = f"if '*' is present, must not specify other {what}"
            out.append(Cause.invalid(f"{path}.{field}", given, told))
    for index, version in enumerate(rule.get("apiVersions") or ()):
        if not version:
            out.append(Cause.required(f"{path}.apiVersions[{index}]"))
    _resources(out, f"{path}.resources", rule.get("resources") or ())
    chosen(out, f"{path}.scope", rule.get("scope"), SCOPES)
    only = rule.get("resourceNames") or ()
    for index, name in enumerate(only):
        if name in only[:index]:
            out.append(Cause.duplicate(f"{path}.resourceNames[{index}]", name))


def _resources(out: Causes, path: str, given: Sequence[str]) -> None:
    if not given:
        out.append(Cause.required(path))
    whole: set[str] = set()
    parts: set[str] = set()
    for index, text in enumerate(given):
        at = f"{path}[{index}]"
        if not text:
            out.append(Cause.required(at))
            continue
        name, slash, part = text.partition("/")
        if not slash:
            continue
        if name in whole:
            out.append(Cause.invalid(at, text, f"if '{name}/*' is present, must not specify {text}"))
        if part in parts:
            out.append(Cause.invalid(at, text, f"if '*/{part}' is present, must not specify {text}"))
        if part == "*":
            whole.add(name)
        if name == "*":
            parts.add(part)
    if len(given) > 1 and "*/*" in given:
        out.append(Cause.invalid(path, given, "if '*/*' is present, must not specify other resources"))
    if "*" in given and any("/" not in text and text != "*" for text in given):
        told = "if '*' is present, must not specify other resources without subresources"
        out.append(Cause.invalid(path, given, told))


def _resources_of(out: Causes, path: str, given: Object) -> None:
    """matchConstraints and matchResources."""
    chosen(out, f"{path}.matchPolicy", given.get("matchPolicy"), MATCH)
    _selectors(out, path, given)
    for field in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(given.get(field) or ()):
            _rule(out, f"{path}.{field}[{index}]", rule)


# -- policies --------------------------------------------------------------------------------------------------


def validating_policy(out: Causes, path: str, spec: Object) -> None:
    """The spec of a ValidatingAdmissionPolicy."""
    from steersman.api.admission.expressions import Uses

    uses = Uses(bool(spec.get("paramKind")))
    scope = _policy(out, path, spec, uses)
    validations, annotations = spec.get("validations") or (), spec.get("auditAnnotations") or ()
    if not validations and not annotations:
        told = "validations or auditAnnotations must contain at least one item"
        out.append(Cause.required(f"{path}.validations", told))
        out.append(Cause.required(f"{path}.auditAnnotations", told))
    for index, given in enumerate(validations):
        _validation(out, f"{path}.validations[{index}]", given, scope, uses)
    if len(annotations) > MAX_ANNOTATIONS:
        told = f"must not have more than {MAX_ANNOTATIONS} auditAnnotations"
        out.append(Cause.invalid(f"{path}.auditAnnotations", annotations, told))
    for index, given in enumerate(annotations[:MAX_ANNOTATIONS]):
        at = f"{path}.auditAnnotations[{index}]"
        if any(given.get("key") == other.get("key") for other in annotations[:index]):
            out.append(Cause.duplicate(f"{at}.key", given.get("key")))
        text = (given.get("valueExpression") or "").strip()
        if not text:
            out.append(Cause.required(f"{at}.valueExpression", "valueExpression is not specified"))
        elif len(text) > MAX_VALUE_EXPRESSION:
            told = f"must not exceed {MAX_VALUE_EXPRESSION} bytes in length"
            out.append(Cause.required(f"{at}.valueExpression", told))
        else:
            _compiles(out, f"{at}.valueExpression", text, scope, uses, "string", "null")


def _policy(out: Causes, path: str, spec: Object, uses: Uses) -> Composed:
    """What both sorts of policies have; the variables of their expressions."""
    from steersman.api.admission.expressions import composed

    chosen(out, f"{path}.failurePolicy", spec.get("failurePolicy"), FAILURE)
    if spec.get("paramKind"):
        for field in ("apiVersion", "kind"):
            if not spec["paramKind"].get(field):
                out.append(Cause.required(f"{path}.paramKind.{field}"))
    constraints = spec.get("matchConstraints")
    if constraints is None:
        out.append(Cause.required(f"{path}.matchConstraints"))
    else:
        _resources_of(out, f"{path}.matchConstraints", constraints)
        if not constraints.get("resourceRules"):
            out.append(Cause.required(f"{path}.matchConstraints.resourceRules"))
    _conditions(out, f"{path}.matchConditions", spec.get("matchConditions") or (), uses.params)
    variables = spec.get("variables") or ()
    scope = composed([v for v in variables if v.get("name") and v.get("expression")], uses)
    for index, given in enumerate(variables):
        at, name = f"{path}.variables[{index}]", given.get("name") or ""
        if not name.strip():
            out.append(Cause.required(f"{at}.name", "name is not specified"))
        elif not _IDENTIFIER.fullmatch(name):
            out.append(Cause.invalid(f"{at}.name", name, "must be a valid CEL identifier"))
        if not (given.get("expression") or "").strip():
            out.append(Cause.required(f"{at}.expression", "expression is not specified"))
        elif name in scope.variables:
            _told(out, f"{at}.expression", scope.variables[name])
    return scope


def _validation(out: Causes, path: str, given: Object, scope: Composed, uses: Uses) -> None:
    if not (given.get("expression") or "").strip():
        out.append(Cause.required(f"{path}.expression", "expression is not specified"))
    else:
        _compiles(out, f"{path}.expression", given["expression"], scope, uses, "bool")
    text, message = given.get("messageExpression") or "", given.get("message") or ""
    if text and not text.strip():
        out.append(Cause.invalid(f"{path}.messageExpression", text, "must be non-empty if specified"))
    elif text:
        _compiles(out, f"{path}.messageExpression", text, scope, uses._replace(authorizer=False), "string")
    if message and not message.strip():
        out.append(Cause.invalid(f"{path}.message", message, "must be non-empty if specified"))
    elif "\n" in message.strip() or "\r" in message.strip():
        out.append(Cause.invalid(f"{path}.message", message, "must not contain line breaks"))
    chosen(out, f"{path}.reason", given.get("reason"), REASONS)


def mutating_policy(out: Causes, path: str, spec: Object) -> None:
    """The spec of a MutatingAdmissionPolicy."""
    from steersman.api.admission.expressions import Uses

    uses = Uses(bool(spec.get("paramKind")), patches=True)
    scope = _policy(out, path, spec, uses)
    for rule in (spec.get("matchConstraints") or EMPTY).get("resourceRules") or ():
        for operation in rule.get("operations") or ():
            if operation not in MUTATED:
                at = f"{path}.matchConstraints.resourceRules.operations"
                out.append(Cause.unsupported(at, operation, MUTATED))
    mutations = spec.get("mutations") or ()
    if not mutations:
        out.append(Cause.required(f"{path}.mutations", "mutations must contain at least one item"))
    for index, given in enumerate(mutations):
        _mutation(out, f"{path}.mutations[{index}]", given, scope, uses)
    if not spec.get("reinvocationPolicy"):
        out.append(Cause.required(f"{path}.reinvocationPolicy"))
    chosen(out, f"{path}.reinvocationPolicy", spec.get("reinvocationPolicy") or None, ("IfNeeded", "Never"))


_PATCHES: Final[Mapping[str, tuple[str, str, str]]] = {
    "JSONPatch": ("jsonPatch", "applyConfiguration", "list(JSONPatch)"),
    "ApplyConfiguration": ("applyConfiguration", "jsonPatch", "Object"),
}


def _mutation(out: Causes, path: str, given: Object, scope: Composed, uses: Uses) -> None:
    kind = given.get("patchType") or ""
    if kind not in _PATCHES:
        at = f"{path}.patchType"
        out.append(Cause.unsupported(at, kind, sorted(_PATCHES)) if kind else Cause.required(at))
        return
    field, other, wanted = _PATCHES[kind]
    if given.get(field) is None:
        out.append(Cause.required(f"{path}.{field}", f"must be specified when patchType is {kind}"))
    elif not (given[field].get("expression") or "").strip():
        out.append(Cause.required(f"{path}.{field}.expression"))
    else:
        _compiles(out, f"{path}.{field}.expression", given[field]["expression"].strip(), scope, uses, wanted)
    if given.get(other) is not None:
        told = f"must not be specified when patchType is {kind}"
        out.append(Cause.invalid(f"{path}.{other}", f"{{{other}}}", told))


def _conditions(out: Causes, path: str, given: Sequence[Object], params: bool) -> None:
    """matchConditions."""
    if not given:
        return
    from steersman.api.admission.expressions import Composed, Uses

    if len(given) > MAX_CONDITIONS:
        out.append(Cause.too_many(path, len(given), MAX_CONDITIONS))
    seen: set[str] = set()
    for index, condition in enumerate(given[:MAX_CONDITIONS]):
        at, name = f"{path}[{index}]", condition.get("name") or ""
        text = (condition.get("expression") or "").strip()
        if not text:
            out.append(Cause.required(f"{at}.expression"))
        else:
            _compiles(out, f"{at}.expression", text, Composed({}, {}), Uses(params), "bool")
        if not name:
            out.append(Cause.required(f"{at}.name"))
        else:
            rules.named(out, f"{at}.name", name, rules.qualified_name)
            if name in seen:
                out.append(Cause.duplicate(f"{at}.name", name))
            seen.add(name)


def _compiles(out: Causes, path: str, text: str, scope: Composed, uses: Uses, *kinds: str) -> None:
    from steersman.api.admission.expressions import compiled, environment

    found = compiled(scope.environment(uses) if scope.types else environment(uses), text, kinds)
    _told(out, path, found)


def _told(out: Causes, path: str, expression: Expression) -> None:
    if expression.fault:
        out.append(Cause.invalid(path, expression.text, expression.fault))


# -- bindings --------------------------------------------------------------------------------------------------


def validating_binding(out: Causes, path: str, spec: Object) -> None:
    """The spec of a ValidatingAdmissionPolicyBinding."""
    mutating_binding(out, path, spec)
    actions, at = spec.get("validationActions") or (), f"{path}.validationActions"
    for index, action in enumerate(actions):
        if action not in ACTIONS:
            out.append(Cause.unsupported(f"{at}[{index}]", action, ACTIONS))
        if action in actions[:index]:
            out.append(Cause.duplicate(f"{at}[{index}]", action))
    if "Deny" in actions and "Warn" in actions:
        why = "repeating the same validation failure information in the API response and headers serves no purpose"
        out.append(Cause.invalid(at, actions, f"must not contain both Deny and Warn ({why})"))
    if not actions:
        out.append(Cause.required(at, "at least one validation action is required"))


def mutating_binding(out: Causes, path: str, spec: Object) -> None:
    """The spec of a MutatingAdmissionPolicyBinding."""
    name = spec.get("policyName") or ""
    if not name:
        out.append(Cause.required(f"{path}.policyName"))
    else:
        rules.named(out, f"{path}.policyName", name, rules.dns_subdomain)
    if spec.get("paramRef") is not None:
        _param_ref(out, f"{path}.paramRef", spec["paramRef"])
    if spec.get("matchResources") is not None:
        _resources_of(out, f"{path}.matchResources", spec["matchResources"])


def _param_ref(out: Causes, path: str, ref: Object) -> None:
    name, selector = ref.get("name") or "", ref.get("selector")
    told = "name and selector are mutually exclusive"
    if name and selector is not None:
        out.append(Cause.forbidden(f"{path}.name", told))
    if selector is not None:
        out += label_selector_causes(selector, f"{path}.selector")
        if name:
            out.append(Cause.forbidden(f"{path}.selector", told))
    if not name and selector is None:
        out.append(Cause.required(path, "one of name or selector must be specified"))
    action, at = ref.get("parameterNotFoundAction") or "", f"{path}.parameterNotFoundAction"
    if not action:
        out.append(Cause.required(at))
    elif action not in ("Deny", "Allow"):
        out.append(Cause.unsupported(at, action, ("Deny", "Allow")))
