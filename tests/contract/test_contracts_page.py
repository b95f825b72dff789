"""The page of contracts shows the protocols of plug-ins."""

from components.contracts.capabilities import CAPABILITIES
from scripts.contracts_page import page


def test_page_shows_every_capability():
    text = page()
    assert [cls for cls in CAPABILITIES if f"{cls.__name__}\n" not in text] == []
