"""What tests of several parts share."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def real_inputs() -> Path:
    """The directory of real recordings and catalogues: $STEERSMAN_DATA, else ../shared/data; or a skip."""
    directory = Path(os.environ.get("STEERSMAN_DATA") or ROOT.parent / "shared" / "data")
    if not directory.is_dir():
        pytest.skip("no real inputs here")
    return directory
