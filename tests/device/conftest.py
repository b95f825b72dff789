"""Load the stand-in for a GPU before the first test of a process that uses it."""

from __future__ import annotations

import pytest
from device import stand_in

from components.maths.compiled import loops
from runner.catalogue import settings


def pytest_collection_finish(session: pytest.Session) -> None:
    """Load the device: autograd supports only devices loaded before the first gradient."""
    if any(item.get_closest_marker("device") for item in session.items):
        try:
            stand_in.load()
        except stand_in.NoCompilerError:
            return  # the fixture skips


@pytest.fixture
def device(monkeypatch):
    """Name of the stand-in for ``device=``; compiled loops for the CPU are off on both devices,
    because they draw other numbers than torch."""
    try:
        stand_in.load()
    except stand_in.NoCompilerError as error:
        pytest.skip(str(error))
    monkeypatch.setattr(settings, "ACCELERATORS", [*settings.ACCELERATORS, stand_in.NAME])
    monkeypatch.setattr(loops, "is_on_cpu", lambda _: False)
    return stand_in.NAME
