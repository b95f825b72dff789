"""A sampler that keeps the law of exact draws passes; each broken one fails."""

from __future__ import annotations

import pytest
from broken_samplers import BROKEN, broken_sampler
from configured import component

from runner.conformance import stationarity
from runner.conformance.outcomes import NonConformanceError, NotCheckedError
from runner.execution.rng import Streams

# the others take from 5 to 60 seconds each
FAST = (
    "barker", "random_walk_mh", "mala: no", "mala: missing", "hmc: everything", "gibbs",
    "importance_sampling", "sghmc", "recipe", "santa",
)  # fmt: skip
SAMPLERS = {
    "random_walk_mh": {}, "mala": {}, "gibbs": {}, "importance_sampling": {}, "sgld": {}, "sghmc": {},
    "hmc": {}, "nuts": {}, "sgd_momentum": {}, "psgld": {}, "adam_noise": {}, "santa": {}, "recipe": {},
    "svgd": {}, "sgdm_r": {}, "adam_nr": {}, "sgld_r": {"chains": 4},
}  # fmt: skip
QUICK = ("random_walk_mh", "mala", "gibbs", "sghmc")


def marked(names, fast):
    return [n if n.startswith(fast) else pytest.param(n, marks=pytest.mark.slow) for n in names]


@pytest.mark.parametrize("mistake", marked(BROKEN, FAST))
def test_broken_samplers_change_the_law(mistake):
    with pytest.raises(NonConformanceError, match=r"have another law|diverges"):
        stationarity.check_stationarity(broken_sampler(mistake), "sampler.py, line 1")


@pytest.mark.parametrize("name", marked(SAMPLERS, QUICK))
def test_our_samplers_keep_the_law(name, request, monkeypatch):
    is_slow = request.node.get_closest_marker("slow") is not None
    for seed in range(10 if is_slow and name not in ("sgdm_r", "adam_nr", "sgld_r") else 1):
        monkeypatch.setattr(stationarity, "Streams", lambda _, seed=seed: Streams(seed))
        method = component("inference", name, **SAMPLERS[name])
        assert "a skewed density" in stationarity.check_stationarity(method, "")


def test_methods_that_do_not_sample_are_not_checked():
    for name in ("map", "cavi"):
        with pytest.raises(NotCheckedError):
            stationarity.check_stationarity(component("inference", name), "")
