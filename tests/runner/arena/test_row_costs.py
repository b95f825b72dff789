"""Counted costs of every row of `posteriors` equal those of a counter inside the density."""

import pytest
import torch

from components import registry
from components.contracts.costs.counts import Costs, counting
from components.contracts.costs.meters import metered, metered_density
from components.contracts.roles import Setting
from runner.arena.lengths import WARM_UP_KEYS
from runner.arena.suite import load_suite
from runner.catalogue.parts import component_defaults
from runner.compose.compose import compose
from runner.compose.job import prepare
from runner.execution.rng import Streams

STEPS = 12
ROWS = load_suite("posteriors").rows


class CountedDensity:
    """A density that counts rows evaluated, and rows whose gradient is taken."""

    def __init__(self, log_density):
        self.log_density = log_density
        self.densities = self.gradients = 0

    def __call__(self, theta):
        value = self.log_density(theta)
        self.densities += len(theta)
        if value.requires_grad:
            value.register_hook(self.count_gradient)
        return value

    def count_gradient(self, slope):
        # a graph of the gradient is built for a second backward pass, which costs as much
        self.gradients += len(slope) * (2 if torch.is_grad_enabled() else 1)


@pytest.mark.slow  # a few steps of 37 methods
@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_counted_costs_equal_an_independent_counter(row, tmp_path):
    words = ["dataset=funnel", "dataset.dim=3", "model=target_density", *row.overrides]
    name = compose(words).cfg.inference.name
    if package := getattr(registry.get("inference", name), "package", None):
        pytest.importorskip(package, reason=f"{package} is not installed")
    keys = component_defaults("inference", name)
    short = dict.fromkeys(WARM_UP_KEYS, 4) | {"thinning": 1}
    words += [f"inference.{key}={value}" for key, value in short.items() if key in keys]
    job = prepare(compose([*words, f"steps={STEPS}", f"output_dir={tmp_path}"]))
    rng = Streams(0)
    problem = job.dataset.load(rng, Setting(tmp_path, torch.device("cpu"), torch.float64, 1, True))
    counter = CountedDensity(problem.log_density)
    problem.log_density = metered_density(counter)
    model = metered(job.model.build(problem, rng))
    costs = Costs()
    with counting(costs):
        state = job.inference.init(model, problem, rng)
        for _, batch in problem.batches(job.inference.requires.batch_kind, rng, 0, STEPS):
            state, _ = job.inference.step(state, batch, rng)
        job.inference.posterior(state)
    assert costs.densities == counter.densities
    assert costs.gradients == counter.gradients
