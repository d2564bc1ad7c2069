"""JUnit XML: what continuous integration shows of a check.

The form is the one that Jenkins, GitLab and GitHub's actions read: testsuites, testsuite, testcase, failure. A BOUNDED
verdict without a violation passes; that it is bounded stands in its properties and in its output.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as Xml

from steersman.check.report.checked import Checked


def junit(checked: Sequence[Checked]) -> str:
    """The report, one suite a file and one case a verdict."""
    root = Xml.Element("testsuites", name="steersman check")
    for file in dict.fromkeys([one.file for one in checked]):
        cases = [one for one in checked if one.file == file]
        suite = Xml.SubElement(
            root,
            "testsuite",
            name=file,
            tests=str(len(cases)),
            failures=str(sum(not one.verdict.holds for one in cases)),
            errors=str(sum(one.verdict.failed is not None for one in cases)),
            time=f"{sum(one.verdict.seconds for one in cases):.3f}",
        )
        for one in cases:
            _case(suite, one)
    Xml.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + _printable(Xml.tostring(root, encoding="unicode")) + "\n"


def _case(suite: Xml.Element, one: Checked) -> None:
    verdict = one.verdict
    title = f"{one.name}[{verdict.scenario}]" if verdict.scenario and verdict.scenario != one.name else one.name
    case = Xml.SubElement(
        suite, "testcase", classname=one.file, name=title, line=str(one.line), time=f"{verdict.seconds:.3f}"
    )
    facts = Xml.SubElement(case, "properties")
    for name, value in {
        "verdict": verdict.word,
        "states": verdict.states,
        "transitions": verdict.transitions,
        **verdict.bounds,
    }.items():
        Xml.SubElement(facts, "property", name=name, value=str(value))
    for violation in verdict.violations:
        failure = Xml.SubElement(case, "failure", message=violation.message, type=violation.title)
        failure.text = f"{violation.message}\n{violation.explanation}"
    if verdict.failed is not None:
        Xml.SubElement(case, "error", message=str(verdict.failed), type=type(verdict.failed).__name__)
    Xml.SubElement(case, "system-out").text = str(verdict)


def _printable(text: str) -> str:
    """Without the control characters that XML cannot hold: messages may quote anything."""
    return "".join([char if char in "\t\n\r" or " " <= char <= "\ud7ff" or char >= "\ue000" else "�" for char in text])
