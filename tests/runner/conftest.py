"""Fixtures of the tests of the runner."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure
from support.runs.sketched import save_sketch


@pytest.fixture(autouse=True, scope="module")
def sketches(request):
    """Records hold sketches; tests/experiments and those of reports draw."""
    with pytest.MonkeyPatch.context() as patch:
        if request.path.parent.name != "report":
            patch.setattr(Figure, "savefig", save_sketch)
        yield
