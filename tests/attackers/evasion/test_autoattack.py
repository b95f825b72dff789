"""Auto-PGD, FAB and AutoAttack: literal algorithm, exact distances, and the standard
composition."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import linprog, minimize
from support.runs.configured import component, draw_normal, draw_uniform, generator
from support.small.small_victims import UNIT, find_broken, make_rng, make_victim, perturb
from torch.testing import assert_close

from components.attackers.attacked import Attacked
from components.attackers.criteria import CRITERIA
from components.attackers.evasion.apgd import _checkpoints
from components.attackers.hyperplanes import project_to_plane
from components.attackers.norms import NORMS
from components.contracts.predictive import Categorical
from runner.compose.compose import compose
from runner.compose.job import prepare

DUAL = {"linf": 1, "l2": 2, "l1": math.inf}


class Planes:
    """A linear classifier of three classes."""

    def __init__(self, inputs=6):
        self.w = draw_normal(inputs, 3, seed=2)
        self.b = -0.5 * self.w.sum(0)

    def predict(self, x, g):
        return Categorical((x @ self.w + self.b)[None, :, None])


def test_checkpoints_match_paper_for_hundred_steps():
    """p = 0.22, 0.41, 0.57, 0.70, 0.80, 0.87, 0.93, 0.99 (Croce and Hein 2020, section 3)."""
    assert sorted(_checkpoints(100)) == [22, 41, 57, 70, 80, 87, 93, 99]


@pytest.mark.parametrize(("norm", "rho"), [("linf", 0.75), ("l2", 0.75), ("l2", 0.3)])
def test_auto_pgd_matches_literal_algorithm(norm, rho):
    """Algorithm 1 row by row on log p, with its two conditions, from the same random start."""
    eps = {"linf": 0.15, "l2": 0.4}[norm]
    steps = 30
    alpha = 0.75
    model, x, y = make_victim(12)
    keys = {"norm": norm, "steps": steps, "rho": rho, "stop_when_broken": False}
    ours = perturb("apgd", model, x, y, eps, seed=3, **keys)
    start = NORMS[norm].start(x, eps, generator(3))
    halvings = 0

    def f(z, label):
        """−J and its gradient."""
        z = z.clone().requires_grad_(True)
        value = -model.predict(z[None], generator()).log_prob(label[None]).sum()
        return float(value), torch.autograd.grad(value, z)[0]

    for b in range(len(x)):

        def project(z, b=b):
            delta = z - x[b]
            delta = (
                delta.clamp(-eps, eps)
                if norm == "linf"
                else delta * min(1.0, eps / float(delta.norm()))
            )
            return (x[b] + delta).clamp(0, 1)

        current = project(x[b] + start[b])
        last = current
        eta = 2 * eps
        value = f(current, y[b])[0]
        best = current
        peak = value
        eta_before = eta
        peak_before = value
        gains = 0
        last_check = 0
        for k in range(1, steps + 1):
            slope = f(current, y[b])[1]
            z = project(current + eta * (slope.sign() if norm == "linf" else slope / slope.norm()))
            candidate = (
                z
                if k == 1
                else project(current + alpha * (z - current) + (1 - alpha) * (current - last))
            )
            last = current
            current = candidate
            gained = f(candidate, y[b])[0]
            gains += gained > value
            value = gained
            if value > peak:
                peak = value
                best = current
            if k in _checkpoints(steps):
                stuck = gains < rho * (k - last_check) or (
                    eta == eta_before and peak == peak_before
                )
                eta_before = eta
                peak_before = peak
                gains = 0
                last_check = k
                if stuck:
                    eta = eta / 2
                    current = best
                    value = peak
                    halvings = halvings + 1
        assert_close(ours[b], best)
    assert halvings > 0


def test_targeted_ratio_matches_equation():
    """(z_y − z_t)/(z_π1 − (z_π3 + z_π4)/2), Croce and Hein (2020), eq. (7), for one network's
    logits of any scale."""
    z = draw_normal(20, 6)
    y, t = (torch.randint(6, (20, 1), generator=generator(s)) for s in (1, 2))
    for scale in (1.0, 1e6):
        ours = CRITERIA["dlr"](Categorical(scale * z[None, :, None]), y, t)
        first, _, third, fourth, *_ = z.sort(1, descending=True)[0].T
        gap = (z.gather(1, y) - z.gather(1, t))[:, 0]
        assert_close(ours, gap / (first - (third + fourth) / 2))


def test_targeted_step_follows_gradient():
    model, x, y = make_victim(15, classes=5)
    other = (y + 1) % 5
    for name, value in CRITERIA.items():
        z = x.clone().requires_grad_(True)
        (literal,) = torch.autograd.grad(value(model.predict(z, generator()), y, other).sum(), z)
        ours = Attacked(model).answer(x, y, generator(), name, towards=other).gradient
        unit = [g / g.norm(dim=1, keepdim=True) for g in (ours, literal)]
        assert_close(*unit)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("bounds", [None, UNIT])
def test_plane_projections_match_solver(norm, bounds):
    x = draw_uniform(8, 5)
    w = draw_normal(8, 5, seed=1)
    w[0, 2] = 0
    b = -(w * draw_uniform(8, 5, seed=4)).sum(1)
    z = project_to_plane(x, w, b, bounds, norm)
    assert_close((w * z).sum(1), -b)
    length = NORMS[norm].size(z - x)
    if bounds is None:
        assert_close(length, ((w * x).sum(1) + b).abs() / w.norm(p=DUAL[norm], dim=1))
        return
    assert 0 <= z.min() <= z.max() <= 1
    for i in range(len(x)):
        point = x[i].numpy()
        normal = w[i].numpy()
        offset = float(b[i])
        if norm == "l2":
            plane = {"type": "eq", "fun": lambda v, n=normal, o=offset: n @ v + o}
            solution = minimize(
                lambda v, p=point: ((v - p) ** 2).sum(),
                point,
                bounds=[UNIT] * 5,
                constraints=plane,
                tol=1e-14,
            )
            exact = solution.fun**0.5
        else:  # |v − x| ≤ t, for each coordinate or for the norm
            count = 1 if norm == "linf" else 5
            each = np.ones((5, 1)) if norm == "linf" else np.eye(5)
            sides = np.block([[np.eye(5), -each], [-np.eye(5), -each]])
            cost = np.r_[np.zeros(5), np.ones(count)]
            plane = np.r_[normal, np.zeros(count)][None]
            limits = [UNIT] * 5 + [(0, None)] * count
            exact = linprog(cost, sides, np.r_[point, -point], plane, [-offset], limits).fun
        assert float(length[i]) == pytest.approx(exact, abs=1e-6)


@pytest.mark.parametrize("norm", NORMS)
def test_fab_finds_distance_to_linear_boundaries(norm):
    model = Planes()
    x = draw_uniform(20, 6)
    y = model.predict(x, generator()).guess
    attacker = component(
        "attacker", "fab", norm=norm, steps=20, final_steps=12, overshoot=1.001, backward=0.95
    )
    nearest, length = attacker.search(Attacked(model), x, y, generator(), math.inf)
    assert find_broken(model, nearest, y).all()
    f = x @ model.w + model.b
    apart = (model.w.T[y] - model.w.T).norm(p=DUAL[norm], dim=-1)  # [B, C], 0 for the label itself
    exact = torch.where(apart > 0, (f.gather(1, y) - f) / apart, torch.inf).amin(1)
    assert ((exact <= length) & (length <= 1.01 * exact)).all()
    half = float(length.median())
    x_adv = attacker.perturb(Attacked(model), x, y, make_rng(), half)
    assert torch.equal(find_broken(model, x_adv, y), length <= half)


def test_autoattack_combines_its_four_attacks():
    made = prepare(
        compose(["+experiment=digits_fgsm", "smoke=true", "attacker=autoattack", "tracking=false"])
    )
    expected = [
        {"name": "apgd", "criterion": "cross_entropy", "n_targets": None, "steps": 100},
        {"name": "apgd", "criterion": "dlr", "n_targets": 9},
        {"name": "fab", "n_targets": 9},
        {"name": "square", "queries": 5000},
    ]
    members = made.attacker.members_by_label.values()
    assert {member.measure() for member in members} == {"linf"}
    for member, keys in zip(members, expected, strict=True):
        assert dict(member).items() >= keys.items() - {("name", member.name)}
        assert member.name == keys["name"]
    assert made.attacker.knowledge_used() == "white box"
