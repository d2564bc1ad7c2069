"""Labels and label selectors on one line, as kubectl shows them."""

from __future__ import annotations

from typing import Any, Final

NONE: Final = "<none>"


def labels_text(labels: Any) -> str:
    """A map of labels: `app=web,tier=front`."""
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or NONE


def selector_text(selector: Any) -> str:
    """A LabelSelector on one line, as kubectl writes it."""
    terms = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for rule in selector.get("matchExpressions") or ():
        key, values = rule.get("key", ""), ",".join(sorted(rule.get("values") or ()))
        operator = rule.get("operator")
        if operator in ("In", "NotIn"):
            terms.append(f"{key} {'in' if operator == 'In' else 'notin'} ({values})")
        else:
            terms.append(key if operator == "Exists" else f"!{key}")
    return ",".join(terms) if terms else NONE
