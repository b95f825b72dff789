"""docs/contracts.md says what the protocols say."""

from scripts.contracts_page import PAGE, page


def test_the_page_is_that_of_the_protocols():
    assert PAGE.read_text(encoding="utf-8") == page(), "run make contracts"
