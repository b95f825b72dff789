"""SVRG, SARAH and combined control variates: literal equations, and the remaining variance."""

import copy

import pytest
import torch
from support.runs.configured import F64, component, double
from support.small.line_model import line_gaussian, line_gradient, line_rows
from support.small.small_bernoulli import flat
from torch.testing import assert_close

from components.gradients.by_parameter import flat as flat_gradients
from components.gradients.pathwise.bound import whole_gradient
from components.gradients.pathwise.snapshot import PassSnapshot, gather, init_snapshot
from components.gradients.pathwise.svrg import SVRG
from runner.execution.rng import Streams


def estimator(name, cls=None, **keys):
    made = component("gradient", name, **keys)
    return made if cls is None else cls(**dict(made))


def literal_gradient(module, batch, seed, phi=None):
    """ĝ_B(φ, ε) with the noise that ``Streams(seed)`` draws first."""
    other = copy.deepcopy(module)
    if phi is not None:
        torch.nn.utils.vector_to_parameters(phi, other.parameters())
    noise = other.draw_noise(batch, 1, Streams(seed).noise)
    return flat(whole_gradient(other, batch, noise)[0])


def snapshot_of(module):
    phi = torch.nn.utils.parameters_to_vector(module.parameters()).detach() + 0.1
    mean = torch.arange(len(phi), dtype=F64)
    return PassSnapshot(phi, mean, True, phi.clone(), torch.zeros_like(phi), 0)


def test_svrg_matches_equation():
    module = line_gaussian(True, "rows")
    data = line_rows()
    batch = data.part(torch.tensor([0, 2, 5]), 2.0)
    svrg = estimator("svrg", coefficient="one")
    state = svrg.init(module, Streams(0))
    state.snapshot = snapshot_of(module)
    estimate, _, later = svrg.estimate(module, batch, Streams(3), state)
    expected = (
        literal_gradient(module, batch, 3)
        - literal_gradient(module, batch, 3, state.snapshot.phi)
        + state.snapshot.mean
    )
    assert_close(flat(estimate), expected)
    v = literal_gradient(module, batch, 3, state.snapshot.phi) - state.snapshot.mean
    assert_close(later.square, 0.05 * v @ v)
    learnt = estimator("svrg")
    state.cross = double(0.6)
    state.square = double(2.0)
    estimate, _, _ = learnt.estimate(module, batch, Streams(3), state)
    assert_close(flat(estimate), literal_gradient(module, batch, 3) - 0.3 * v)


def test_pass_accumulates_full_gradient_at_its_start():
    module = line_gaussian(True, "rows")
    data = line_rows()
    state = init_snapshot(module)
    rng = Streams(0)
    exact = line_gradient(module, data)
    parts = [data.part(torch.tensor(rows), 2.0) for rows in ([0, 3, 4], [1, 2, 5])]
    state = gather(state, module, parts[0], 20_000, rng.noise)
    assert not state.known
    for p in module.parameters():
        p.data.add_(0.5)
    state = gather(state, module, parts[1], 20_000, rng.noise)
    assert state.known
    assert_close(state.mean, exact, atol=0.1, rtol=0)
    assert_close(state.phi + 0.5, state.next_phi)
    assert (line_gradient(module, data) - exact).abs().max() > 1


def test_sarah_matches_equation_and_restarts_as_svrg():
    module = line_gaussian(False, "rows")
    data = line_rows()
    batch = data.part(torch.tensor([0, 2, 5]), 2.0)
    sarah = estimator("sarah", restart=5)
    state = sarah.init(module, Streams(0))
    state.snapshot = snapshot_of(module)
    state.steps = 2
    state.phi = state.snapshot.phi + 0.2
    state.gradient = state.snapshot.mean + 1
    estimate, _, later = sarah.estimate(module, batch, Streams(3), state)
    expected = (
        literal_gradient(module, batch, 3)
        - literal_gradient(module, batch, 3, state.phi)
        + state.gradient
    )
    assert_close(flat(estimate), expected)
    assert_close(later.gradient, expected)
    assert later.steps == 3
    state.steps = 0
    svrg = estimator("svrg", coefficient="one")
    other = svrg.init(module, Streams(0))
    other.snapshot = state.snapshot
    assert_close(
        flat(sarah.estimate(module, batch, Streams(3), state)[0]),
        flat(svrg.estimate(module, batch, Streams(3), other)[0]),
    )


def members(*names, **keys):
    return [component("gradient", name, **keys) for name in names]


def test_combination_matches_equation():
    module = line_gaussian(True, "rows")
    data = line_rows()
    batch = data.part(torch.tensor([0, 2, 5]), 2.0)
    parts = members("sticking_the_landing", "taylor_cv")
    combined = estimator("combined_cv", members=parts, ridge=0.1, decay=0.9)
    state = combined.init(module, Streams(0))
    assert torch.equal(combined.weights(state), torch.zeros(2, dtype=F64))
    A = double([[2.0, 0.5], [0.5, 1.0]])
    b = double([0.3, -0.7])
    state.products = A
    state.cross = b
    a = -torch.linalg.inv(A + 0.1 * 1.5 * torch.eye(2, dtype=F64)) @ b
    estimate, _, later = combined.estimate(module, batch, Streams(3), state)
    g = literal_gradient(module, batch, 3)
    c = torch.stack([flat(m.estimate(module, batch, Streams(3), None)[0]) - g for m in parts])
    assert_close(flat(estimate), g + a @ c)
    assert_close(later.products, 0.9 * A + 0.1 * c @ c.T)
    assert_close(later.cross, 0.9 * b + 0.1 * c @ g)


def traces(names_and_estimators, steps=80, learn=80):
    """Trace of the covariance of each estimator over minibatches and draws, after it has learnt."""
    module = line_gaussian(True, "shared")
    data = line_rows()
    out = {}
    for name, single in names_and_estimators.items():
        rng = Streams(5)
        state = single.init(module, Streams(0))
        results = []
        order = torch.arange(6)
        for t in range(learn + steps):
            if t % 2 == 0:
                order = torch.randperm(6, generator=rng.batches)
            rows = order[:3] if t % 2 == 0 else order[3:]
            gradients, _, state = single.estimate(module, data.part(rows, 2.0), rng, state)
            if t >= learn:
                results.append(flat(gradients).detach())
        out[name] = float(torch.stack(results).var(0).sum())
    return out


def test_combination_varies_less_than_members():
    """A combination is at least as good as its best member, and better than ĝ; SVRG at fixed
    parameters leaves only the noise of μ̃."""
    local = members("taylor_cv", scale="local")[0]
    sticking = members("sticking_the_landing")[0]
    trace_values = traces(
        {
            "reparam": estimator("reparam"),
            "local": local,
            "sticking": sticking,
            "combined": estimator("combined_cv", members=[local, sticking]),
            "svrg": estimator("svrg", snapshot_samples=16),
        }
    )
    assert trace_values["combined"] < 1.2 * min(trace_values["local"], trace_values["sticking"])
    assert trace_values["combined"] < 0.9 * trace_values["reparam"]
    assert trace_values["svrg"] < 0.4 * trace_values["reparam"]


class WithoutMean(SVRG):
    """Broken variant that subtracts the gradient at the snapshot without adding its mean."""

    def estimate(self, module, batch, rng, state):
        state.snapshot.mean = torch.zeros_like(state.snapshot.mean)
        return super().estimate(module, batch, rng, state)


def test_snapshot_without_mean_is_detected():
    module = line_gaussian(False, "rows")
    data = line_rows()
    exact = line_gradient(module, data)
    for cls, wrong in ((SVRG, False), (WithoutMean, True)):
        single = estimator("svrg", cls, coefficient="one", n_samples=30)
        state = single.init(module, Streams(0))
        rng = Streams(1)
        results = []
        for _ in range(60):
            batch = data.part(torch.randperm(6, generator=rng.batches)[:3], 2.0)
            gradients, _, state = single.estimate(module, batch, rng, state)
            results.append(flat_gradients(gradients, module.parameters()))
        z = (torch.stack(results).mean(0) - exact) / (torch.stack(results).std(0) / 60**0.5)
        assert (z.abs().max() > 6) == wrong


def test_biased_members_are_refused():
    with pytest.raises(ValueError, match=r"sarah is not an unbiased .*; use sticking_the_landing"):
        estimator("combined_cv", members=members("sarah"))
