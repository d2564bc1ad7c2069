"""Label selectors: the text form of list requests and the object form of specs, compiled to one matcher.

Source of the facts (grammar, matching rules, messages): apimachinery `pkg/labels` and
`pkg/apis/meta/v1/validation`, release 1.36. Messages have Kubernetes' words, then the position and the remedy.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeGuard

from steersman.api.errors import ApiError, Cause, bad_request, invalid, quote
from steersman.api.names import label_value, qualified_name

# A selector comes in a query string, which servers limit to tens of kilobytes; the largest in use list names.
MAX_LENGTH: Final = 64 * 1024
MAX_REQUIREMENTS: Final = 1000  # each costs a look-up per object listed
MAX_VALUES: Final = 10_000  # of one `in` or `notin`

IN, NOT_IN, EXISTS, NOT_EXISTS, GREATER, LESS = "in", "notin", "exists", "!", "gt", "lt"
EQUALS, DOUBLE_EQUALS, NOT_EQUALS = "=", "==", "!="

_SYMBOLS = {EQUALS: "=", DOUBLE_EQUALS: "==", NOT_EQUALS: "!=", GREATER: ">", LESS: "<"}
_OPERATORS = {text: name for name, text in _SYMBOLS.items()} | {IN: IN, NOT_IN: NOT_IN}
OBJECT_OPERATORS: Final = {"In": IN, "NotIn": NOT_IN, "Exists": EXISTS, "DoesNotExist": NOT_EXISTS}

_INTEGER = re.compile(r"[+-]?[0-9]{1,64}")
_NO_LABELS: Mapping[str, str] = {}


def integer(text: object) -> int | None:
    """The signed 64-bit integer in `text`, or None; of at most 64 digits, as a label value has."""
    if not isinstance(text, str) or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(1 << 63) <= number < 1 << 63 else None


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label. `values` are sorted and distinct; `number` is the bound of gt and lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()
    chosen: frozenset[str] = frozenset()
    number: int = 0

    @property
    def exact(self) -> bool:
        """Whether the label must have one certain value."""
        return self.operator in (IN, EQUALS, DOUBLE_EQUALS) and len(self.values) == 1

    def matches(self, labels: Mapping[str, str]) -> bool:
        found = labels.get(self.key)
        if self.operator in (IN, EQUALS, DOUBLE_EQUALS):
            return found is not None and found in self.chosen
        if self.operator in (NOT_IN, NOT_EQUALS):
            return found is None or found not in self.chosen
        if self.operator == EXISTS:
            return found is not None
        if self.operator == NOT_EXISTS:
            return found is None
        number = integer(found)
        if number is None:
            return False
        return number > self.number if self.operator == GREATER else number < self.number

    def __str__(self) -> str:
        if self.operator == EXISTS:
            return self.key
        if self.operator == NOT_EXISTS:
            return "!" + self.key
        if self.operator in (IN, NOT_IN):
            return f"{self.key} {self.operator} ({','.join(self.values)})"
        return f"{self.key}{_SYMBOLS[self.operator]}{self.values[0]}"


def require(key: str, operator: str, values: Iterable[str], path: str = "") -> Requirement:
    """The requirement, checked. Raises Refused with Kubernetes' messages, their fields under `path`."""
    values = tuple(sorted(set(values)))
    at = f"{path}.values" if path else "values"
    problems = _key_problems(key, f"{path}.key" if path else "key")
    if operator in (GREATER, LESS):
        if len(values) != 1:
            problems.append(Cause.invalid(at, values, "for 'Gt', 'Lt' operators, exactly one value is required"))
        for index, value in enumerate(values):
            if integer(value) is None:
                detail = "for 'Gt', 'Lt' operators, the value must be an integer"
                problems.append(Cause.invalid(f"{at}[{index}]", value, detail))
    elif operator in (IN, NOT_IN) and not values:
        problems.append(Cause.invalid(at, (), "for 'in', 'notin' operators, values set can't be empty"))
    elif operator in (EXISTS, NOT_EXISTS) and values:
        detail = "values set must be empty for exists and does not exist"
        problems.append(Cause.invalid(at, values, detail))
    for index, value in enumerate(values):
        if wrong := label_value(value):
            problems.append(Cause.invalid(f"{at}[{index}][{key}]", value, "; ".join(wrong)))
    if problems:
        raise Refused(problems)
    number = (integer(values[0]) or 0) if operator in (GREATER, LESS) else 0
    return Requirement(key, operator, values, frozenset(values), number)


def _key_problems(key: str, path: str) -> list[Cause]:
    wrong = qualified_name(key)
    return [Cause.invalid(path, key, "; ".join(wrong))] if wrong else []


class Refused(Exception):
    """Requirements that cannot be; whoever compiles them turns it into the ApiError of the case."""

    def __init__(self, causes: Sequence[Cause]) -> None:
        super().__init__(causes)
        self.causes = tuple(causes)

    def __str__(self) -> str:
        texts = [str(cause) for cause in self.causes]
        return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """A conjunction of requirements, sorted by key. An empty one matches everything, `nothing()` nothing."""

    requirements: tuple[Requirement, ...] = ()
    equalities: tuple[tuple[str, str], ...] = ()
    """(key, value) pairs that matching labels must hold: any of them may be looked up in an index."""
    others: tuple[Requirement, ...] = ()
    never: bool = False

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        """Whether labels (None: there are none) satisfy every requirement."""
        if self.never:
            return False
        if labels is None:
            labels = _NO_LABELS
        for key, value in self.equalities:
            if labels.get(key) != value:
                return False
        return all(requirement.matches(labels) for requirement in self.others)

    @property
    def empty(self) -> bool:
        """Whether everything matches."""
        return not self.requirements and not self.never

    def __str__(self) -> str:
        """The expression that parses to this selector again; the empty text for both all and nothing."""
        return ",".join(map(str, self.requirements))

    @staticmethod
    def everything() -> LabelSelector:
        return _EVERYTHING

    @staticmethod
    def nothing() -> LabelSelector:
        return _NOTHING

    @staticmethod
    def of(requirements: Iterable[Requirement]) -> LabelSelector:
        """The selector of checked requirements."""
        ordered = tuple(sorted(requirements, key=lambda requirement: requirement.key))
        equalities = tuple((r.key, r.values[0]) for r in ordered if r.exact)
        return LabelSelector(ordered, equalities, tuple(r for r in ordered if not r.exact))

    @staticmethod
    def parse(text: str) -> LabelSelector:
        """The selector of an expression such as `app=web,tier in (a,b),!legacy,size>3`. ApiError 400."""
        if not isinstance(text, str) or len(text) > MAX_LENGTH:
            raise bad_request(f"a label selector is a text of at most {MAX_LENGTH} characters; shorten it")
        return _Parser(text).parse()

    @staticmethod
    def compile(selector: object, path: str = "selector") -> LabelSelector:
        """The selector of a LabelSelector object: `matchLabels` and `matchExpressions`; None selects nothing.

        Raises ApiError 422 whose causes name the fields below `path`.
        """
        if selector is None:
            return _NOTHING
        causes = label_selector_causes(selector, path)
        if causes:
            raise invalid("LabelSelector", "", causes, "meta.k8s.io")
        assert isinstance(selector, Mapping)
        pairs = (selector.get("matchLabels") or {}).items()
        found = [Requirement(key, EQUALS, (value,), frozenset((value,))) for key, value in pairs]
        for term in selector.get("matchExpressions") or ():
            found.append(require(term["key"], OBJECT_OPERATORS[term["operator"]], term.get("values") or ()))
        return LabelSelector.of(found)


_EVERYTHING = LabelSelector()
_NOTHING = LabelSelector(never=True)


def label_selector_causes(selector: object, path: str) -> list[Cause]:
    """What is wrong with a LabelSelector object, in the words of Kubernetes' validation; empty: nothing."""
    if not isinstance(selector, Mapping):
        return [Cause.type_invalid(path, selector, "must be an object with matchLabels and matchExpressions")]
    labels, terms = selector.get("matchLabels") or {}, selector.get("matchExpressions") or ()
    if not isinstance(labels, Mapping):
        return [Cause.type_invalid(f"{path}.matchLabels", labels, "must be an object of label keys and values")]
    if not is_list(terms):
        return [Cause.type_invalid(f"{path}.matchExpressions", terms, "must be a list of requirements")]
    if len(labels) + len(terms) > MAX_REQUIREMENTS:
        return [Cause.too_many(path, len(labels) + len(terms), MAX_REQUIREMENTS)]
    causes: list[Cause] = []
    for key, value in labels.items():
        if not isinstance(key, str) or not isinstance(value, str):
            causes.append(Cause.type_invalid(f"{path}.matchLabels", value, f"the value of {key!r} must be text"))
            continue
        causes += [Cause.invalid(f"{path}.matchLabels", key, problem) for problem in qualified_name(key)]
        causes += [Cause.invalid(f"{path}.matchLabels", value, problem) for problem in label_value(value)]
    for index, term in enumerate(terms):
        causes += _term_causes(term, f"{path}.matchExpressions[{index}]")
    return causes


def _term_causes(term: object, path: str) -> list[Cause]:
    causes = shape_causes(term, path)
    if causes:
        return causes
    assert isinstance(term, Mapping)
    key, operator, values = term["key"], term["operator"], term.get("values") or ()
    if operator in ("In", "NotIn") and not values:
        detail = "must be specified when `operator` is 'In' or 'NotIn'"
        causes.append(Cause.required(f"{path}.values", detail))
    elif operator in ("Exists", "DoesNotExist") and values:
        detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        causes.append(Cause.forbidden(f"{path}.values", detail))
    elif operator not in OBJECT_OPERATORS:
        causes.append(Cause.invalid(f"{path}.operator", operator, "not a valid selector operator"))
    causes += [Cause.invalid(f"{path}.key", key, problem) for problem in qualified_name(key)]
    for index, value in enumerate(values):
        causes += [Cause.invalid(f"{path}.values[{index}]", value, p) for p in label_value(value)]
    return causes


def shape_causes(term: object, path: str) -> list[Cause]:
    """What is wrong with the JSON types of a requirement."""
    if not isinstance(term, Mapping):
        return [Cause.type_invalid(path, term, "must be an object with key, operator and values")]
    for name in ("key", "operator"):
        if not isinstance(term.get(name), str):
            return [Cause.type_invalid(f"{path}.{name}", term.get(name), "must be text")]
    values = term.get("values") or ()
    if not is_list(values) or not all(isinstance(value, str) for value in values):
        return [Cause.type_invalid(f"{path}.values", values, "must be a list of texts")]
    if len(values) > MAX_VALUES:
        return [Cause.too_many(f"{path}.values", len(values), MAX_VALUES)]
    return []


def is_list(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether the value is a JSON list: any sequence but text."""
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


_TOKEN = re.compile(r"[ \t\r\n]*(==|!=|[=!(),<>]|[^ \t\r\n=!(),<>]+|\Z)")
_SPECIAL = frozenset(["==", "!=", *"=!(),<>", ""])
_REMEDY = 'write requirements like "key=value", "key in (a,b)", "key" or "!key", separated by commas'


class _Parser:
    """Recursive descent over the tokens of a label selector expression."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, int]] = []
        at = 0
        while not self.tokens or self.tokens[-1][0]:
            found = _TOKEN.match(text, at)
            assert found  # some alternative matches everywhere
            self.tokens.append((found[1], found.start(1)))
            at = found.end()
        self.next = 0

    def parse(self) -> LabelSelector:
        found: list[Requirement] = []
        if not self.peek():
            return _EVERYTHING
        while True:
            if self.peek() in _SPECIAL and self.peek() != "!":
                expected = "identifier after ','" if found else "!, identifier, or 'end of string'"
                raise self.wrong(self.peek(), expected, 0)
            found.append(self.requirement())
            if len(found) > MAX_REQUIREMENTS:
                raise bad_request(f"a label selector may have at most {MAX_REQUIREMENTS} requirements")
            token = self.take()
            if not token:
                return LabelSelector.of(found)
            if token != ",":
                raise self.wrong(token, "',' or 'end of string'")

    def requirement(self) -> Requirement:
        negated = self.peek() == "!"
        if negated:
            self.take()
        key, at = self.take(), self.tokens[self.next - 1][1]
        if key in _SPECIAL:
            raise self.wrong(key, "identifier", in_requirement=True)
        if wrong := qualified_name(key):
            raise self.refused(f"<nil>: Invalid value: {quote(key)}: {'; '.join(wrong)}", at)
        if negated or self.peek() in ("", ","):
            return Requirement(key, NOT_EXISTS if negated else EXISTS)
        token = self.take()
        operator = _OPERATORS.get(token)
        if operator is None:
            raise self.wrong(token, "in, notin, =, ==, !=, gt, lt", in_requirement=True)
        values = self.values() if operator in (IN, NOT_IN) else [self.exact_value()]
        try:
            return require(key, operator, values)
        except Refused as refused:
            raise self.refused(str(refused), at) from None

    def exact_value(self) -> str:
        if self.peek() in ("", ","):
            return ""
        token = self.take()
        if token in _SPECIAL:
            raise self.wrong(token, "identifier", in_requirement=True)
        return token

    def values(self) -> list[str]:
        """The list in parentheses; an empty place between commas or parentheses is the empty value."""
        if (token := self.take()) != "(":
            raise self.wrong(token, "'('", in_requirement=True, comma="")
        found: list[str] = []
        while True:
            if self.peek() in (",", ")"):
                found.append("")
            else:
                value = self.take()
                if value in _SPECIAL:
                    expected = "',', or identifier" if found else "',', ')' or identifier"
                    raise self.wrong(value, expected, in_requirement=True)
                found.append(value)
            token = self.take()
            if token == ")":
                return found
            if token != ",":
                raise self.wrong(token, "',' or ')'", in_requirement=True)
            if len(found) > MAX_VALUES:
                raise bad_request(f"a requirement of a label selector may list at most {MAX_VALUES} values")

    def peek(self) -> str:
        return self.tokens[self.next][0]

    def take(self) -> str:
        token = self.tokens[self.next][0]
        self.next = min(self.next + 1, len(self.tokens) - 1)
        return token

    def wrong(
        self, token: str, expected: str, back: int = 1, *, in_requirement: bool = False, comma: str = ","
    ) -> ApiError:
        at = len(self.text) if not token else self.tokens[self.next - back][1]
        text = f"found '{token}'{comma} expected: {expected}"
        return self.refused(text, at) if in_requirement else self.located(text, at)

    def refused(self, text: str, at: int) -> ApiError:
        return self.located(f"unable to parse requirement: {text}", at)

    def located(self, text: str, at: int) -> ApiError:
        return bad_request(f"{text} (at character {at + 1} of {quote(self.text[:200])}; {_REMEDY})")
