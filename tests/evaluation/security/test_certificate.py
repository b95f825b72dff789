"""Certificates, compared with sampled, gradient-based and enumerated inputs: no bound may be
exceeded."""

import itertools
from dataclasses import replace

import pytest
import torch
from support.runs.configured import F64, generator, normal, uniform
from support.small.small_nets import random_network
from support.small.small_problems import classes
from torch.testing import assert_close

from components.attackers.norms import NORMS
from components.contracts.capabilities.margins import MarginBounds
from components.evaluation.security.certificate import perturbations
from components.maths.intervals import Perturbations

ACTIVATIONS = ["relu", "leaky_relu", "tanh", "gelu", "softplus", "identity"]


def images(dtype=F64):
    problem = classes(n=12, n_inputs=24, dtype=dtype)
    return replace(problem, image_shape=(6, 4))


def points(inputs, n=300):
    """Corners and inner points of the inputs that an attack may reach from the rows [n, B, D]."""
    g = generator(1)
    if inputs.norm is None:
        u = uniform(g, n, *inputs.x.shape)
        u[: n // 2] = u[: n // 2].round()
        return inputs.x + inputs.low + u * (inputs.high - inputs.low)
    norm = NORMS[inputs.norm]
    starts = torch.stack([norm.start(inputs.x, inputs.eps, g) for _ in range(n)])
    lengths = norm.size(starts.flatten(0, 1)).view(n, -1, 1)
    starts[: n // 2] *= (inputs.eps / lengths)[: n // 2]
    return inputs.x + starts.clamp(inputs.low, inputs.high)


def margins(f, y):
    """f_y − f_c of f [..., T, C], infinite where c = y."""
    label_logit = y.expand(f.shape[:-1]).unsqueeze(-1)
    return (f.gather(-1, label_logit) - f).scatter(-1, label_logit, torch.inf)


NETWORKS = [{"widths": [7, 6], "activation": name} for name in ACTIVATIONS] + [
    {
        "model": "cnn",
        "channels": [3, 4],
        "kernel": 3,
        "widths": [5],
        "activation": activation,
        "downsampling": downsampling,
    }
    for activation in ("relu", "gelu")
    for downsampling in ("pool", "stride")
]


@pytest.mark.parametrize("measure", NORMS)
@pytest.mark.parametrize("keys", NETWORKS, ids=lambda keys: "-".join(map(str, keys.values())))
def test_sampled_margins_are_above_bounds(keys, measure):
    problem = images() if "model" in keys else classes(n=8, n_inputs=5, n_tasks=2)
    net = random_network(problem, **keys)
    y = problem.test.y
    inputs = perturbations(problem, y, measure, 0.1 if "model" in keys else 0.2)
    bound = net.margin_bounds(None, y, inputs)
    f = net(points(inputs).flatten(0, 1)).unflatten(0, (300, -1))
    assert (margins(f, y).amin(0) >= bound.lower[0]).all()
    assert ((bound.low[0] <= f) & (f <= bound.high[0])).all()
    tight = net.margin_bounds(None, y, perturbations(problem, y, measure, 0.0)).lower[0]
    assert_close(tight, margins(net(inputs.x), y), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("measure", NORMS)
@pytest.mark.parametrize("model", ["mlp", "cnn"])
def test_attacked_margins_are_above_bounds(model, measure):
    problem = images()
    keys = {"widths": [9]} if model == "mlp" else {"channels": [3], "widths": [6]}
    net = random_network(problem, model=model, **keys)
    y = problem.test.y
    inputs = perturbations(problem, y, measure, 0.3)
    bound = net.margin_bounds(None, y, inputs).lower[0]
    for c in range(problem.n_classes):
        x = inputs.x.clone()
        for _ in range(25):
            leaf = x.clone().requires_grad_(True)
            with torch.enable_grad():
                m = margins(net(leaf), y)[:, 0, c]
                m = torch.where(m.isfinite(), m, 0.0 * leaf.sum(1)).sum()
                g = torch.autograd.grad(m, leaf)[0]
            step = x - 0.2 * inputs.eps * NORMS[measure].steepest(g)
            delta = NORMS[measure].project(step - inputs.x, 0.3)
            x = (inputs.x + delta).clamp(0, 1)
        assert (margins(net(x), y)[..., c] >= bound[..., c]).all()


def test_bounds_match_split_by_signs():
    """Limits of z = W h + b: Σ_i W⁺ low + W⁻ high + b, and with low and high exchanged."""
    problem = classes(n=6, n_inputs=4)
    y = problem.test.y
    net = random_network(problem, widths=[3])
    inputs = perturbations(problem, y, "linf", 0.1)
    (W, b), (V, c) = [(w.double(), b.double()) for w, b in net.layers(net.theta)]
    low = inputs.x + inputs.low
    high = inputs.x + inputs.high
    ends = torch.stack([W * low[:, None], W * high[:, None]])  # [2, B, H, D]
    h_low, h_high = ((z.sum(2) + b).relu() for z in (ends.amin(0), ends.amax(0)))
    D = V[y] - V  # [B, C, H]
    least = (D.clamp_min(0) * h_low[:, None] + D.clamp_max(0) * h_high[:, None]).sum(2) + c[y] - c
    least.scatter_(1, y, torch.inf)
    bound = net.margin_bounds(None, y, inputs).lower[0, :, 0]
    assert_close(bound, least, rtol=0, atol=1e-12)


@pytest.mark.parametrize("measure", NORMS)
def test_linear_network_has_exact_margins(measure):
    """The smallest margin is at the corner, the point of the sphere or the axis given by the dual
    norm; in a box, at one of its corners."""
    problem = replace(classes(n=10, n_inputs=4), bounds=None)
    net = random_network(problem, widths=[])
    y = problem.test.y
    W, _ = net.layers(net.theta)[0]
    inputs = perturbations(problem, y, measure, 0.25)
    bound = net.margin_bounds(None, y, inputs).lower[0, :, 0]
    D = W[y] - W  # [B, C, D]
    delta = {
        "linf": D.sign(),
        "l2": D / D.norm(dim=2, keepdim=True).clamp_min(1e-12),
        "l1": torch.zeros_like(D).scatter(2, D.abs().argmax(2, keepdim=True), 1.0) * D.sign(),
    }[measure]
    f = net((inputs.x[:, None] - 0.25 * delta).flatten(0, 1)).unflatten(0, (10, 3))  # [B, C, 1, C]
    reached = margins(f, y[:, None]).diagonal(dim1=1, dim2=3)[:, 0]
    assert_close(bound, reached, rtol=0, atol=1e-6)
    if measure == "linf":
        boxed = replace(problem, bounds=(0.0, 1.0))
        inputs = perturbations(boxed, y, measure, 0.4)
        bound = net.margin_bounds(None, y, inputs).lower[0]
        corners = torch.stack(
            [
                torch.where(torch.tensor(bits).bool(), inputs.high, inputs.low)
                for bits in itertools.product((0, 1), repeat=4)
            ]
        )
        every = margins(net((inputs.x + corners).flatten(0, 1)).unflatten(0, (16, -1)), y)
        assert_close(bound, every.amin(0), rtol=1e-9, atol=1e-6)


def test_bounds_hold_for_single_precision():
    """The smallest margin of a linear network, computed in single precision at its corner, is below
    the bound for real numbers in some rows and above our bound in all; inputs and ε are multiples
    of 2⁻⁸, so that no input is rounded."""
    problem = classes(n=400, n_inputs=64, dtype=torch.float32)
    net = random_network(problem, scale=20.0, widths=[])
    x = (problem.test.x * 256).round() / 256
    y = problem.test.y
    reach = torch.full_like(x, 0.125).double()
    inputs = Perturbations(x.double(), -reach, reach)
    W, _ = net.layers(net.theta)[0]
    D = W[y[:, 0]][:, None] - W  # [B, C, D]
    corners = x[:, None] - 0.125 * D.sign()
    f = net(corners.flatten(0, 1)).unflatten(0, (400, 3))[:, :, 0]  # [B, C, C]
    label_logit = f.gather(2, y[:, None].expand(-1, 3, 1))[..., 0]
    computed = label_logit.double() - f.diagonal(dim1=1, dim2=2).double()
    bound = net.margin_bounds(None, y, inputs).lower[0, :, 0]
    real = net.double().margin_bounds(None, y, inputs).lower[0, :, 0]
    others = bound.isfinite()
    assert (computed[others] >= bound[others]).all()
    assert (computed[others] < real[others]).any()
    assert (real - bound)[others].max() < 1e-2


def test_mixture_bounds_hold_for_sampled_logits():
    """For any logits of K networks within their limits and margins above their bounds, the mean
    probabilities differ by at least the bound, and a certified class does not change."""
    g = generator(0)

    def u(*shape):
        return uniform(g, *shape)

    centre = 3 * normal(g, 4, 200, 1, 3)
    centre[..., 0] += 1.5
    radius = 0.7 * u(4, 200, 1, 3)
    low = centre - radius
    high = centre + radius
    m = low[..., :1] - high + 0.2
    m[..., 0] = torch.inf
    bounds = MarginBounds(m, low, high, 0.0)
    least = torch.full_like(low, torch.inf)
    for _ in range(400):
        f = low + u(*low.shape).round() * (high - low)
        kept = (f[..., :1] - f >= m)[..., 1:].all(-1, keepdim=True)
        p = f.softmax(-1)
        least = torch.where(kept, torch.minimum(least, p[..., :1] - p), least)
        mean = torch.where(kept.all(0), p.mean(0), torch.tensor([1.0, 0.0, 0.0]).double())
        assert (mean.argmax(-1) == 0)[bounds.certified()].all()
    assert (bounds.probability_differences() <= least + 1e-12)[..., 1:].all()
    assert 20 < bounds.certified().sum() < 180
    exact = MarginBounds((centre[..., :1] - centre).where(m < 99, m), centre, centre, 0.0)
    p = centre.softmax(-1)
    differences = exact.probability_differences()[..., 1:]
    assert_close(differences, (p[..., :1] - p)[..., 1:])
