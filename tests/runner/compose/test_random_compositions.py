"""Random compositions end without tracebacks, mismatched shapes of scores or hangs, and suggested
fixes work.
"""

import random

import pytest
from support.runs.forked_runs import run
from support.runs.random_compositions import (
    composition,
    follow_offer,
    is_fault_of_its_own,
    list_offers,
)

SEED = 20261125
WORKS = 0.95  # share of suggestions that are accepted


def check(n, seed, folder):
    """Run n compositions and one suggestion of each error; returns (broken commands, suggestions,
    failed suggestions)."""
    rng = random.Random(seed)
    broken = []
    offers = 0
    refused = []
    for i in range(n):
        argv = composition(rng)
        outcome = run(argv, folder / str(i))
        if outcome.is_broken:
            broken.append((argv, outcome.code, outcome.output[-800:]))
        words = list_offers(outcome.message) if outcome.code == 2 else []
        if not words:
            continue
        again = follow_offer(argv, rng.choice(words), outcome.message)
        second = run(again, folder / f"{i}_again")
        offers += 1
        if second.is_broken:
            broken.append((again, second.code, second.output[-800:]))
        elif second.code == 2 and not is_fault_of_its_own(argv, again, second.message):
            refused.append((argv, outcome.message, again, second.message))
    return broken, offers, refused


@pytest.mark.slow  # 40 s
def test_few_compositions_have_no_internal_error(tmp_path):
    broken, _, refused = check(8, SEED, tmp_path)
    assert not broken
    assert not refused


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(20))
def test_thousand_compositions_have_no_internal_error(batch, tmp_path):
    broken, offers, refused = check(50, SEED + 1 + batch, tmp_path)
    assert not broken
    assert len(refused) <= 1 + (1 - WORKS) * offers, refused  # of 20 batches together one in twenty


def test_equal_seeds_make_equal_commands():
    first = random.Random(5)
    second = random.Random(5)
    assert [composition(first) for _ in range(5)] == [composition(second) for _ in range(5)]


def test_suggestions_are_read_from_the_message():
    message = (
        "inference=dsvi requires elbo, which model=mlp lacks as configured; set model.posterior=sparse; compatible "
        "inference methods: map, sgld"
    )
    assert list_offers(message) == [
        ["model.posterior=sparse"],
        ["inference=map"],
        ["inference=sgld"],
    ]
    assert list_offers("a; remove the attacker (z) with ~attacker") == [["~attacker"]]
    assert list_offers("a; experiments with dataset=d: +experiment=e, +experiment=f") == [
        ["+experiment=e"],
        ["+experiment=f"],
    ]
    assert is_fault_of_its_own(
        ["a=1", "validation=0.9"], ["a=2", "validation=0.9"], "validation=0.9: leaves no row"
    )
    assert not is_fault_of_its_own(
        ["model=m", "steps=9"], ["model=n", "steps=9"], "model=n: has no steps.size"
    )
    argv = ["dataset=d", "model=m", "model.k=1", "inference=i", "smoke=true"]
    assert follow_offer(argv, ["model=x"], "m") == [
        "dataset=d",
        "inference=i",
        "smoke=true",
        "model=x",
    ]
