"""Names of chains in a message."""

from components.inference.chains import NAMED, name_chains


def test_many_chains_are_abbreviated():
    assert name_chains([3]) == "chains [3]"
    assert name_chains(list(range(NAMED + 95))) == "chains [0, 1, 2, 3, 4] and 95 more"
