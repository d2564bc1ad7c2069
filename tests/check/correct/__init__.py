"""Controllers as people write them, of many styles, each right: nothing may be told of them under any fault.

An alarm is a mistake of theirs or of a property; both are mended, nothing is set aside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import steersman as sm
from tests.check.correct import children, fields, outside

CORRECT: Final[Mapping[str, Callable[[], sm.Scenario]]] = {
    make.__name__: make for part in (children, fields, outside) for make in part.EVERY
}
"""By what they are."""
