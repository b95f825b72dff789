"""The loop and the three norms of gradient attacks, compared with slow searches and literal
equations."""

import itertools

import pytest
import torch
from support.runs.configured import F64, draw_normal, draw_uniform, generator, normal
from support.small.small_victims import UNIT, Softmax, find_broken, images, make_victim, perturb
from torch.testing import assert_close

from components.attackers.attacked import Attacked
from components.attackers.evasion.loop import Ascent, ascend
from components.attackers.norms import NORMS, Ball, feasible_set
from components.contracts.predictive import Categorical


@pytest.mark.parametrize("norm", NORMS)
def test_starts_fill_the_ball_and_stay_inside(norm):
    like = torch.zeros(4000, 3, dtype=F64)
    start = NORMS[norm].start(like, 0.7, generator())
    size = NORMS[norm].size(start) / 0.7
    assert size.max() <= 1 + 1e-12
    # In a ball of D dimensions P(‖δ‖ ≤ r ε) = r^D, for all norms.
    for r in (0.5, 0.8):
        share = float((size <= r).double().mean())
        assert share == pytest.approx(r**3, abs=4 * (r**3 * (1 - r**3) / 4000) ** 0.5)
    assert start.mean(0).abs().max() < 0.05


@pytest.mark.parametrize("norm", NORMS)
def test_projection_is_nearest_point_of_ball(norm):
    hooks = NORMS[norm]
    eps = 0.5
    delta = draw_normal(12, 4, seed=3)
    inside = 0.1 * delta / delta.abs().sum(1, keepdim=True)
    assert_close(hooks.project(inside, eps), inside)
    projected = hooks.project(delta, eps)
    assert hooks.size(projected).max() <= eps + 1e-12
    # z* is the projection of z exactly when (z − z*)·(v − z*) ≤ 0 for every v of the ball (the ball
    # is convex).
    ball = hooks.start(torch.zeros(5000, 4, dtype=F64), eps, generator(9))
    ball = torch.cat(
        [
            ball,
            eps * ball / hooks.size(ball)[:, None],
            eps * torch.eye(4, dtype=F64),
            -eps * torch.eye(4),
        ]
    )
    for row, ours in zip(delta, projected, strict=True):
        assert ((ball - ours) @ (row - ours)).max() <= 1e-12


@pytest.mark.parametrize("bounds", [None, UNIT])
def test_box_is_linf_ball_within_bounds(bounds):
    origin, x_adv = draw_uniform(2, 6, 4, seed=3)
    rows = torch.tensor([0, 2, 5])
    x_adv = 3 * x_adv - 1
    box = feasible_set("linf", origin, 0.2, bounds)
    ball = Ball(NORMS["linf"], origin, 0.2, bounds)
    assert_close(box.project(x_adv.clone()), ball.project(x_adv.clone()))
    assert_close(box.of(rows).project(x_adv[rows]), ball.of(rows).project(x_adv[rows]))
    literal = origin + (x_adv - origin).clamp(-0.2, 0.2)
    assert_close(box.project(x_adv.clone()), literal if bounds is None else literal.clamp(*bounds))


def test_steepest_direction_gains_most():
    gradient = draw_normal(5, 4, seed=4)
    assert torch.allclose(
        (NORMS["linf"].steepest(gradient) * gradient).sum(1), gradient.abs().sum(1)
    )
    assert torch.allclose((NORMS["l2"].steepest(gradient) * gradient).sum(1), gradient.norm(dim=1))
    # one of four coordinates is kept: the exact steepest direction of L1
    step = NORMS["l1"].steepest(gradient)
    assert torch.allclose((step * gradient).sum(1), gradient.abs().amax(1))


def test_pgd_matches_equation():
    victim_model, x, y = make_victim()
    victim = Attacked(victim_model, UNIT)
    eps = 0.2
    alpha = 0.05
    ours = ascend(
        victim, x, y, generator(5), eps, Ascent("linf", 4, alpha / eps, stop_when_broken=False)
    )
    literal = x.clone()
    for _ in range(4):
        for b in range(len(x)):
            z = literal[b : b + 1].clone().requires_grad_(True)
            log_prob = victim_model.predict(z, generator()).log_prob(y[b : b + 1]).sum()
            (gradient,) = torch.autograd.grad(log_prob, z)
            x_adv = literal[b] - alpha * gradient[0].sign()
            literal[b] = torch.minimum(torch.maximum(x_adv, x[b] - eps), x[b] + eps).clamp(0, 1)
    assert_close(ours, literal)


def test_momentum_matches_equation():
    victim_model, x, y = make_victim(5)
    victim = Attacked(victim_model)
    eps = 0.3
    mu = 0.9
    ours = ascend(
        victim, x, y, generator(), eps, Ascent("l2", 3, 0.4, momentum=mu, stop_when_broken=False)
    )
    literal = x.clone()
    m = torch.zeros_like(x)
    for _ in range(3):
        gradient = -victim.input_gradient(literal, y, generator())
        m = mu * m + gradient / gradient.abs().sum(1, keepdim=True)
        delta = literal + 0.4 * eps * m / m.norm(dim=1, keepdim=True) - x
        literal = x + delta * (eps / delta.norm(dim=1, keepdim=True)).clamp_max(1)
    assert_close(ours, literal)


def test_fgsm_is_one_step_of_bim():
    model, x, y = make_victim()
    bim = perturb("bim", model, x, y, 0.1, steps=1, step_size=1.0, stop_when_broken=False)
    assert torch.equal(perturb("fgsm", model, x, y, 0.1), bim)


def test_early_stopping_breaks_same_images_with_fewer_steps():
    model, x, y = make_victim(60)
    victim = Attacked(model, UNIT)
    outcome = []
    calls = []
    for stop in (True, False):
        model.calls = 0
        x_adv = ascend(
            victim, x, y, generator(), 0.3, Ascent("linf", 20, 0.1, stop_when_broken=stop)
        )
        calls.append(model.calls)
        outcome.append(victim.broken(x_adv, y, generator()))
    assert (outcome[0] >= outcome[1]).all()  # stopped rows cannot leave the region
    assert calls[0] < 0.8 * calls[1]


def test_restarts_keep_broken_rows():
    model = Softmax(seed=3)
    x, y = images(model, 50, seed=7)
    victim = Attacked(model, UNIT)
    for seed, stop in itertools.product(range(3), (True, False)):
        broken = []
        for restarts in (1, 4):
            settings = Ascent(
                "linf", 6, 0.3, random_start=True, restarts=restarts, stop_when_broken=stop
            )
            broken.append(
                find_broken(model, ascend(victim, x, y, generator(seed), 0.15, settings), y)
            )
        assert (broken[1] >= broken[0]).all()


def test_stochastic_predictions_disable_early_stopping():
    """Rows that stop at the boundary are classified correctly again in half of the cases, unlike
    rows that continue."""

    class Wavering(Softmax):
        def predict(self, x, g):
            f = super().predict(x, g).logits
            return Categorical(f + 0.3 * normal(g, f.shape))

    model, x, y = make_victim(100)
    wavering = Wavering()
    assert Attacked(wavering).is_stochastic(x)
    assert not Attacked(model).is_stochastic(x)
    single, many = (
        ascend(Attacked(wavering, UNIT), x, y, generator(1), 0.3, settings)
        for settings in (Ascent("linf", 1, 1.0, stop_when_broken=False), Ascent("linf", 20, 0.125))
    )
    standing = [
        float((~Attacked(wavering).broken(z, y, generator(9))).double().mean())
        for z in (single, many)
    ]
    assert standing[1] <= standing[0]
    going_on = Ascent("linf", 20, 0.125, stop_when_broken=False)
    assert torch.equal(many, ascend(Attacked(wavering, UNIT), x, y, generator(1), 0.3, going_on))
