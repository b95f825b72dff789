"""Counted costs of every row of `posteriors`, `weights` and `gradients` equal the counts of a counter
inside the density, the network or the model."""

from contextlib import suppress

import pytest
import torch

from components import registry
from components.contracts.costs.counts import Costs, counting
from components.contracts.costs.meters import metered, metered_density
from components.gradients.pathwise.surrogate import Derivatives
from components.inference.variational.laboratory import spread
from components.models.networks.activations import ActivationFunction
from runner.arena.lengths import WARM_UP_KEYS, find_length
from runner.arena.suite import load_suite
from runner.compose.compose import compose
from runner.compose.expand import component_defaults
from runner.compose.job import prepare
from runner.errors import UnfitError
from runner.execution.assembly import load_problem
from runner.execution.execute import run
from runner.execution.rng import Streams
from runner.terminal.printer import suppress_output

STEPS = 12
ROWS = load_suite("posteriors").rows


class CountedRows:
    """A counter of rows through a model, and of rows of gradients."""

    def __init__(self):
        self.rows = self.slopes = 0

    def watch(self, value, width=1):
        """A tensor with this number of entries for each row."""
        inside = value
        while torch._C._functorch.is_functorch_wrapped_tensor(inside):
            inside = torch._C._functorch.get_unwrapped(inside)
        n = inside.numel() // width
        self.rows += n
        if inside is not value:  # mapped over, which calls no hook
            self.slopes += n
        elif value.requires_grad:
            # a graph of the gradient is built for a second backward pass, which costs as much
            value.register_hook(lambda _: self.add(2 * n if torch.is_grad_enabled() else n))
        return value

    def add(self, n):
        self.slopes += n


def train(job, rng, problem, model):
    """Counted costs of a few steps and of the posterior after them, and the rows of a batch."""
    costs = Costs()
    with counting(costs):
        state = job.inference.init(model, problem, rng)
        for _, batch in problem.batches(job.inference.requires.batch_kind, rng, 0, STEPS):
            state, _ = job.inference.step(state, batch, rng)
        job.inference.posterior(state)
    return costs, None if batch is None else batch.n_rows


def prepare_row(folder, words, **short):
    """The job of a row with short settings, and its problem; ``short`` has the permitted settings."""
    name = compose(words).cfg.inference.name
    if package := getattr(registry.get("inference", name), "package", None):
        pytest.importorskip(package, reason=f"{package} is not installed")
    keys = component_defaults("inference", name)
    short |= dict.fromkeys(WARM_UP_KEYS, 4) | {"thinning": 1}
    words = [*words, *(f"inference.{key}={value}" for key, value in short.items() if key in keys)]
    job = prepare(compose([*words, f"output_dir={folder}", "tracking=false"]))
    rng = Streams(0)
    return job, rng, load_problem(job, rng)


@pytest.mark.slow  # a few steps of 37 methods
@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_counted_costs_equal_an_independent_counter(row, tmp_path):
    words = ["dataset=funnel", "dataset.dim=3", "model=target_density", *row.overrides]
    job, rng, problem = prepare_row(tmp_path, [*words, f"steps={STEPS}"])
    counter = CountedRows()
    plain = problem.log_density
    problem.log_density = metered_density(lambda theta: counter.watch(plain(theta)))
    costs, _ = train(job, rng, problem, metered(job.model.build(problem, rng)))
    assert costs.densities == counter.rows
    assert costs.gradients == counter.slopes


class CountedActivation(CountedRows):
    """A counter of rows through the second of two hidden layers, which has 13 units."""

    def __init__(self, network):
        super().__init__()
        self.activation = network.activation
        self.bend = network.bend
        network.activation = lambda z: self.apply(z, self.activation)
        network.bend = ActivationFunction(
            lambda z: self.apply(z, self.bend.value), self.derive, self.bend.keeps
        )

    def apply(self, z, activation):
        h = activation(z)
        if 13 in h.shape:
            self.watch(h.select(h.shape.index(13), 0).detach())
            if h.requires_grad:
                h.register_hook(lambda slope: self.add(slope.numel() // 13))
        return h

    def derive(self, slope, value, out):
        self.slopes += value.numel() // 13 if 13 in value.shape else 0
        return self.bend.derivative(slope, value, out)


WEIGHTS = load_suite("weights")


@pytest.mark.slow  # a few steps of 22 methods
@pytest.mark.parametrize("row", WEIGHTS.rows, ids=[row.name for row in WEIGHTS.rows])
def test_rows_through_a_network_equal_an_independent_counter(row, tmp_path):
    data = ["dataset.set=yacht", "dataset.simulated=true", "dataset.batch_size=null"]
    words = ["+experiment=posterior_quality", *WEIGHTS.overrides, *row.overrides, *data]
    words += ["model.widths=[7,13]", f"steps={STEPS}"]
    job, rng, problem = prepare_row(tmp_path, words, max_steps=5)
    model = job.model.build(problem, rng)
    counter = CountedActivation(getattr(model, "network", model))
    costs, n_rows = train(job, rng, problem, metered(model))
    assert costs.forwards == counter.rows
    assert costs.gradients * n_rows == counter.slopes


def count_rows(model, counter):
    """The model as a user's model that counts the rows of its log densities and derivatives."""

    class Counted(type(model)):
        def log_likelihood(self, theta, batch):
            return counter.watch(super().log_likelihood(theta, batch))

        def score(self, theta, batch, value):
            counter.rows += len(theta) * batch.n_rows
            counter.slopes += len(theta) * batch.n_rows
            return super().score(theta, batch, value)

        def log_joint(self, batch, z):
            return counter.watch(super().log_joint(batch, z))

        def draw_with_derivative(self, batch, n_samples, generator):
            log_q, log_joint, plain = super().draw_with_derivative(batch, n_samples, generator)

            def pull_back(*cotangents):
                counter.slopes += log_joint.numel()
                return plain(*cotangents)

            return log_q, counter.watch(log_joint), pull_back

    methods = {name for name in vars(Counted) if not name.startswith("__")}
    offered = set(dir(type(model)))
    if hasattr(model, "visible"):  # counts inputs of its decoder
        network = model.visible.network
        decode = network.forward
        network.forward = lambda h: counter.watch(decode(h), len(network.layers[-1].bias))
        offered.remove("log_joint")
    for name in methods - offered:
        delattr(Counted, name)
    model.__class__ = Counted
    return model


GRADIENTS = load_suite("gradients")
DISCRETE = ["dataset.offline=always", "dataset.n_train=32", "dataset.n_test=20", "model.units=6"]


@pytest.mark.slow  # a few steps of 29 estimators
@pytest.mark.parametrize("row", GRADIENTS.rows, ids=[row.name for row in GRADIENTS.rows])
def test_passes_of_an_estimator_equal_an_independent_counter(row, tmp_path, monkeypatch):
    short = [*row.overrides, "inference.at=[2]", "inference.draws=4", "inference.batches=1"]
    short += [f"steps={STEPS}"]
    for name, more in ("logistic", []), ("dvae", DISCRETE):
        with suppress(UnfitError):
            words = [*GRADIENTS.overrides, *GRADIENTS.problems[name], *short, *more]
            job, rng, problem = prepare_row(tmp_path, words)
            break
    timed = []  # costs of one estimate, as in the suite

    def record(costs):
        timed.append(costs)
        return counting(costs)

    monkeypatch.setattr(spread, "counting", record)
    counter = CountedRows()
    model = metered(count_rows(job.model.build(problem, rng), counter))
    products = []  # one backward pass for each Hessian
    multiply = Derivatives.columns

    def columns(self, L):
        products.append(L.shape[-1] - 1)  # one pass through the graph of the gradient
        return multiply(self, L)

    monkeypatch.setattr(Derivatives, "columns", columns)
    costs, n_rows = train(job, rng, problem, model)
    timed.append(costs)
    assert sum(costs.forwards for costs in timed) == counter.rows
    assert (sum(costs.gradients for costs in timed) - sum(products)) * n_rows == counter.slopes


OWN = [row for row in ROWS if "(peer)" not in row.name]


@pytest.mark.slow  # runs of the small budget
@pytest.mark.parametrize("problem", ["funnel", "banana"])
@pytest.mark.parametrize("row", OWN, ids=[row.name for row in OWN])
def test_run_spends_its_budget(row, problem, tmp_path):
    suite = load_suite("posteriors")
    limits = suite.budgets["small"]
    words = [*suite.overrides, *suite.problems[problem], *row.overrides, "replicates=1"]
    words += find_length(suite, limits, words)
    with suppress_output():
        _, result = run(prepare(compose([*words, f"output_dir={tmp_path}", "tracking=false"])))
    shares = [result.get(f"cost/{kind}", [0])[0] / limit for kind, limit in limits.items()]
    assert 0.95 <= max(shares) <= 1.1
