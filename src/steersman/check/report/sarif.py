"""SARIF 2.1.0: findings as code scanners report them, each with the steps that lead to it as a code flow.

Source of the form: the OASIS standard "Static Analysis Results Interchange Format (SARIF) Version 2.1.0".
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, Final

import orjson
from xxhash import xxh3_128_hexdigest

from steersman.check.report.checked import Checked
from steersman.check.story import Step
from steersman.check.verdict import Violation

SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
Json = dict[str, Any]


def sarif(checked: Sequence[Checked]) -> str:
    """The report: one run, a rule for each kind of violation, a result for each violation."""
    found = [(one, violation) for one in checked for violation in one.verdict.violations]
    rules = list(dict.fromkeys([_rule_id(violation) for _, violation in found]))
    run: Json = {
        "tool": {
            "driver": {
                "name": "steersman",
                "semanticVersion": version("steersman"),
                "rules": [_rule(rule) for rule in rules],
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": [_result(one, violation, rules) for one, violation in found],
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [_bounded(one) for one in checked if not one.verdict.complete],
            }
        ],
    }
    return orjson.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, option=orjson.OPT_INDENT_2).decode()


def _rule_id(violation: Violation) -> str:
    words = "-".join(violation.name.split())
    return violation.kind if words == violation.kind else f"{violation.kind}/{words}"


def _rule(rule: str) -> Json:
    return {"id": rule, "shortDescription": {"text": rule.replace("/", ": ").replace("-", " ")}}


def _result(one: Checked, violation: Violation, rules: list[str]) -> Json:
    rule = _rule_id(violation)
    steps = () if violation.story is None else violation.story.steps
    last = next((step.item[0] for step in reversed(steps) if step.item is not None and step.changes), "")
    file, line = one.sources.get(last, (one.file, one.line))
    scenario = _location(one.file, one.line, f"scenario {one.verdict.title}")
    result: Json = {
        "ruleId": rule,
        "ruleIndex": rules.index(rule),
        "level": "error",
        "message": {"text": f"{one.verdict.title}: {violation.message}"},
        "locations": [_location(file, line)],
        "relatedLocations": [{**scenario, "id": 1}],
        "partialFingerprints": {"schedule/v1": xxh3_128_hexdigest("\n".join(violation.schedule.labels).encode())},
    }
    if steps:
        flow = [_flow(step, one, violation) for step in steps]
        result["codeFlows"] = [{"threadFlows": [{"locations": flow}]}]
    return result


def _flow(step: Step, one: Checked, violation: Violation) -> Json:
    story = violation.story
    file, line = one.sources.get(step.item[0] if step.item is not None else "", (one.file, one.line))
    text = step.text if story is None else story.named(step.text)
    return {
        "executionOrder": step.number,
        "importance": "essential" if step.changes or step.stale else "important",
        "location": _location(file, line, text),
    }


def _location(file: str, line: int, text: str = "") -> Json:
    place: Json = {"artifactLocation": {"uri": file.replace("\\", "/")}, "region": {"startLine": line}}
    return {"physicalLocation": place, **({"message": {"text": text}} if text else {})}


def _bounded(one: Checked) -> Json:
    return {
        "level": "note",
        "message": {"text": f"{one.target}: {one.verdict.word} ({one.verdict.incomplete})"},
        "locations": [_location(one.file, one.line)],
    }
