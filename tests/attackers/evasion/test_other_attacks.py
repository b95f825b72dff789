"""Noise, DeepFool, Carlini and Wagner, Langevin samples and squares, against their equations
written out."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from support.runs.configured import component, draw_normal, generator
from support.small.small_victims import F64, Softmax, images
from torch.testing import assert_close

from components.attackers.attacked import Attacked
from components.attackers.criteria import margins
from components.attackers.evasion.square import _count_halvings, _window
from components.attackers.norms import NORMS
from components.contracts.predictive import Categorical

SIZES = {"linf": 0.2, "l2": 0.5, "l1": 1.0}
UNIT = (0.0, 1.0)
EVERY = [
    *(("random_noise", {"norm": norm}) for norm in NORMS),
    *(("deepfool", {"norm": norm}) for norm in ("linf", "l2")),
    ("cw", {"searches": 3, "steps": 20}),
    ("cw", {"searches": 3, "steps": 20, "target": 1}),
    *(("sgld_attack", {"norm": norm}) for norm in NORMS),
    ("square", {"queries": 60}),
    ("square", {"queries": 60, "target": 1}),
    ("one_pixel", {"population": 8, "generations": 3}),
    ("one_pixel", {"population": 8, "generations": 3, "pixels": 2, "target": 1}),
    ("apgd", {"steps": 20}),
    ("apgd", {"steps": 20, "criterion": "dlr", "n_targets": 2}),
    ("apgd", {"steps": 20, "norm": "l2", "stop_when_broken": False, "restarts": 2}),
    ("apgd", {"steps": 10, "norm": "l1", "target": 1}),
    ("fab", {"steps": 10, "n_targets": 2}),
    ("fab", {"steps": 10, "norm": "l1", "n_targets": 2, "restarts": 2}),
]


def rng(seed: int = 0) -> SimpleNamespace:
    return SimpleNamespace(attack=generator(seed))


def broken(model: Softmax, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return Attacked(model).broken(x, y, generator())


def share_broken(model: Softmax, x: torch.Tensor, y: torch.Tensor) -> float:
    return float(broken(model, x, y).double().mean())


@pytest.mark.parametrize(("name", "keys"), EVERY)
def test_attacks_stay_in_the_ball_and_the_bounds_and_repeat_themselves(name, keys):
    model = Softmax(draws=2)
    x, y = images(model)
    x[0], x[1] = 0.0, 1.0  # at the bounds
    attacker = component("attacker", name, **keys)
    eps = SIZES[attacker.measure()]
    moved = attacker.perturb(Attacked(model, UNIT), x, y, rng(), eps)
    assert moved.isfinite().all()
    assert NORMS[attacker.measure()].size(moved - x).max() <= eps * (1 + 1e-9)
    assert moved.min() >= 0
    assert moved.max() <= 1
    assert torch.equal(moved, attacker.perturb(Attacked(model, UNIT), x, y, rng(), eps))
    assert torch.equal(attacker.perturb(Attacked(model, UNIT), x, y, rng(), 0.0), x)


@pytest.mark.parametrize(("name", "keys"), EVERY)
def test_missing_labels_and_no_rows_do_no_harm(name, keys):
    model = Softmax()
    x, y = images(model, 6)
    y[:3] = -1
    attacker = component("attacker", name, **keys)
    assert attacker.perturb(Attacked(model, UNIT), x, y, rng(), 0.2).isfinite().all()
    assert len(attacker.perturb(Attacked(model, UNIT), x[:0], y[:0], rng(), 0.2)) == 0


def test_margins_are_those_of_the_logits():
    model = Softmax()
    x, y = images(model)
    predictive = model.predict(x, generator())
    f = predictive.logits[0, :, 0]
    y = (y + torch.arange(len(y))[:, None]) % 3
    for b, margin in enumerate(margins(predictive, y)):
        label = int(y[b])
        assert float(margin) == pytest.approx(
            float(f[b, label] - max(f[b, k] for k in range(3) if k != label))
        )


def test_margins_of_several_tasks_are_the_smallest_of_the_labels_seen():
    logits = draw_normal(1, 4, 2, 3)
    y = torch.tensor([[0, 1], [-1, 2], [1, -1], [-1, -1]])
    found = margins(Categorical(logits), y)
    for b in range(4):
        gaps = []
        for t in range(2):
            if y[b, t] >= 0:
                label = int(y[b, t])
                others = [float(logits[0, b, t, k]) for k in range(3) if k != label]
                gaps.append(float(logits[0, b, t, label]) - max(others))
        assert float(found[b]) == pytest.approx(min(gaps, default=0.0))


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_deepfool_is_its_algorithm_written_out(norm):
    """Row by row on the logits themselves, without a cap, as the algorithm is printed."""
    model = Softmax(seed=1)
    x, y = images(model, 15, seed=3)
    ours = component("attacker", "deepfool", norm=norm, steps=20).perturb(
        Attacked(model), x, y, rng(), 1e6
    )
    for b in range(len(x)):
        total, label = torch.zeros_like(x[b]), int(y[b])

        def logits(z):
            return model.predict(z[None], generator()).logits[0, 0, 0]

        for _ in range(20):
            if int(logits(x[b] + 1.02 * total).argmax()) != label:
                break
            at = x[b] + total
            f, jacobian = logits(at), torch.autograd.functional.jacobian(logits, at)
            steps = []
            for k in range(3):
                if k != label:
                    w, gap = jacobian[k] - jacobian[label], abs(float(f[k] - f[label]))
                    if norm == "l2":
                        steps.append((gap / float(w.norm()), gap / float(w.norm()) ** 2 * w))
                    else:
                        steps.append(
                            (gap / float(w.abs().sum()), gap / float(w.abs().sum()) * w.sign())
                        )
            total = total + min(steps, key=lambda s: s[0])[1]
        assert_close(ours[b], x[b] + 1.02 * total)


def test_deepfool_finds_the_exact_distance_to_the_planes_of_a_linear_classifier():
    model = Softmax()
    model.w = 1e-4 * torch.eye(6, 8, dtype=F64).unsqueeze(0)  # tanh is the identity to 1e-8
    model.v = 1e4 * model.v
    x, y = images(model, 20)
    f = model.predict(x, generator()).logits[0, :, 0]
    planes = (model.w @ model.v)[0].T  # [C, D]
    for norm in ("l2", "linf"):
        moved = component("attacker", "deepfool", norm=norm, overshoot=1e-4).perturb(
            Attacked(model), x, y, rng(), 1e6
        )
        assert broken(model, moved, y).all()
        for b in range(20):
            label = int(y[b])
            dual = {"l2": 2, "linf": 1}[norm]
            exact = min(
                float((f[b, label] - f[b, k]) / (planes[label] - planes[k]).norm(p=dual))
                for k in range(3)
                if k != label
            )
            assert float(NORMS[norm].size((moved - x)[b : b + 1])) == pytest.approx(exact, rel=1e-3)


@pytest.mark.parametrize("kappa", [0.0, 0.8])
def test_one_step_of_carlini_and_wagner_written_out(kappa):
    """Two steps of Adam on ‖x'(w) − x‖² + c max(Z_y − max Z_i, −κ), differentiated as a whole."""
    model = Softmax()
    x, y = images(model, 12)
    y[6:] = (y[6:] + 1) % 3  # misjudged already: only κ > 0 asks for more of these
    attacker = component(
        "attacker", "cw", searches=1, steps=2, lr=0.05, c=0.7, shrink=0.999, kappa=kappa
    )
    _, _, last = attacker._descend(
        Attacked(model, UNIT), x, y, torch.full((12,), 0.7, dtype=F64), generator(), 0.0
    )
    w = torch.atanh(0.999 * (2 * x - 1)).requires_grad_(True)
    adam = torch.optim.Adam([w], lr=0.05)
    for _ in range(2):
        adam.zero_grad()
        moved = (w.tanh() + 1) / 2
        f = model.predict(moved, generator()).logits[0, :, 0]
        own = f.gather(1, y)[:, 0]
        rest = f.scatter(1, y, -torch.inf).amax(1)
        ((moved - x).square().sum() + 0.7 * (own - rest).clamp_min(-kappa).sum()).backward()
        adam.step()
    assert_close(last, (w.detach().tanh() + 1) / 2)


@pytest.mark.parametrize("target", [None, 1])
def test_success_of_carlini_and_wagner_is_by_a_margin_of_kappa(target):
    """The shortest perturbation found with κ has the margin, and is longer than what would do
    without."""
    model = Softmax()
    x, y = images(model, 30)
    labels = y if target is None else torch.full_like(y, target)
    length = {}
    for kappa in (0.0, 0.6):
        attacker = component(
            "attacker", "cw", steps=60, lr=0.05, c=20.0, kappa=kappa, target=target
        )
        descent = (
            Attacked(model, UNIT),
            x,
            labels,
            torch.full((30,), 20.0, dtype=F64),
            generator(),
            0.0,
        )
        found, length[kappa], _ = attacker._descend(*descent)
        won = length[kappa].isfinite()
        assert won.sum() > 20
        margin = margins(model.predict(found[won], generator()), labels[won])
        margin = margin if target is None else -margin
        assert margin.max() <= -kappa
    both = length[0.0].isfinite() & length[0.6].isfinite()
    assert (length[0.6] - length[0.0])[both].mean() > 0.01


def test_the_search_over_the_price_of_carlini_and_wagner_written_out():
    """Row by row: the price halved towards 0 or the last failure where it succeeds, ten times
    larger while nothing has."""
    model = Softmax()
    x, y = images(model, 9)
    attacker, victim = (
        component("attacker", "cw", searches=5, steps=15, lr=0.05, c=0.6),
        Attacked(model),
    )
    eps = 1e-3  # below every length: no row ends early, and the direction is all that is left
    ours, failed = attacker.perturb(victim, x, y, rng(), eps), 0
    for b in range(len(x)):
        low, high, c, shortest, best = 0.0, float("inf"), 0.6, float("inf"), x[b]
        for _ in range(5):
            price = torch.tensor([c], dtype=F64)
            found, length, last = attacker._descend(
                victim, x[b : b + 1], y[b : b + 1], price, generator(), eps
            )
            if float(length) < float("inf"):
                high = min(high, c)
                best = found[0] if float(length) < shortest else best
            else:
                low, failed = max(low, c), failed + 1
                best = last[0] if shortest == float("inf") else best
            shortest = min(shortest, float(length))
            c = 10 * c if high == float("inf") else (low + high) / 2
        assert_close(ours[b], x[b] + eps * (best - x[b]) / (best - x[b]).norm())
    assert 0 < failed < 5 * len(x)


@pytest.mark.slow
def test_the_search_of_carlini_and_wagner_comes_near_the_shortest_perturbation():
    """On a linear classifier without bounds the shortest perturbation is the distance to the
    nearest plane."""
    model = Softmax()
    model.w, model.v = 1e-4 * torch.eye(6, 8, dtype=F64).unsqueeze(0), 1e4 * model.v
    x, y = images(model, 20)
    exact = (
        component("attacker", "deepfool", norm="l2", overshoot=0.0).perturb(
            Attacked(model), x, y, rng(), 1e6
        )
        - x
    )
    attacker = component("attacker", "cw", searches=12, steps=300, lr=0.01)
    c = torch.ones(20, dtype=F64)
    length = torch.full_like(c, torch.inf)
    low, high = torch.zeros_like(c), torch.full_like(c, torch.inf)
    for _ in range(12):  # the search itself, with no ball in which to stop
        now = attacker._descend(Attacked(model), x, y, c, generator(), 0.0)[1]
        high = torch.where(now.isfinite(), torch.minimum(high, c), high)
        low = torch.where(now.isfinite(), low, torch.maximum(low, c))
        c = torch.where(high.isinf(), 10 * c, (low + high) / 2)
        length = torch.minimum(length, now)
    assert (length >= exact.norm(dim=1) * (1 - 1e-6)).all()
    assert (length / exact.norm(dim=1)).mean() < 1.05
    inside = attacker.perturb(Attacked(model), x, y, rng(), 1.05 * float(length.median()))
    assert (broken(model, inside, y) >= (length <= 1.05 * length.median())).all()


def test_langevin_steps_written_out():
    """(3.14) row by row, the same uncertain numbers drawn in the same order."""
    model, eps = Softmax(), 0.3
    x, y = images(model, 10)
    attacker = component("attacker", "sgld_attack", steps=4.0, temperature=0.01, margin=0.5)
    ours = attacker.perturb(Attacked(model, UNIT), x, y, rng(3), eps)
    g = generator(3)
    number, alpha, margin = attacker.draw(x, g, eps)
    assert margin.any()
    assert not margin.all()
    at = x.clone()
    for t in range(int(number.max())):
        z = torch.randn(x.shape, generator=g, dtype=F64)
        for b in range(len(x)):
            if t >= number[b]:
                continue
            here = at[b : b + 1].clone().requires_grad_(True)
            log_p = model.predict(here, generator()).logits[0, 0, 0].log_softmax(0)
            label = int(y[b])
            objective = log_p[label]
            if margin[b]:
                objective = log_p[label] - max(log_p[k] for k in range(3) if k != label)
            (gradient,) = torch.autograd.grad(objective, here)
            a = float(alpha[b])
            moved = at[b] - a * gradient[0].sign() + (2 * a * 0.01) ** 0.5 * z[b]
            at[b] = torch.minimum(torch.maximum(moved, x[b] - eps), x[b] + eps).clamp(0, 1)
    assert_close(ours, at)


def test_what_langevin_samples_are_uncertain_about_has_the_moments_of_its_laws():
    attacker = component(
        "attacker", "sgld_attack", steps=6.0, step_size=0.4, beta_a=2.0, beta_b=3.0, margin=0.3
    )
    n, eps = 20_000, 0.5
    number, alpha, margin = attacker.draw(torch.zeros(n, 1, dtype=F64), generator(), eps)
    beta = alpha / (0.4 * eps)
    assert beta.max() <= 1
    a, b = 2.0, 3.0
    variance = a * b / ((a + b) ** 2 * (a + b + 1))
    for values, mean, var in [
        (number, 6.0, 6.0),
        (beta, a / (a + b), variance),
        (margin.double(), 0.3, 0.21),
    ]:
        assert values.mean() == pytest.approx(mean, abs=4 * (var / n) ** 0.5)
        assert values.var() == pytest.approx(var, rel=0.05)


def test_without_a_projection_langevin_samples_leave_the_ball():
    model = Softmax()
    x, y = images(model)
    for project, inside in [(True, True), (False, False)]:
        attacker = component("attacker", "sgld_attack", temperature=1.0, project=project)
        moved = attacker.perturb(Attacked(model), x, y, rng(), 0.1)
        assert (float((moved - x).abs().max()) <= 0.1 + 1e-12) == inside


class Counting(Softmax):
    """Remembers what it was asked."""

    def __init__(self, **keys):
        super().__init__(**keys)
        self.asked: list[torch.Tensor] = []

    def predict(self, x, g):
        assert not torch.is_grad_enabled()
        self.asked.append(x.clone())
        return super().predict(x, g)


@pytest.mark.parametrize("shape", [None, (4, 4), (2, 4, 2)])
def test_squares_change_one_window_at_a_time_and_keep_only_what_helps(shape):
    model = Counting(inputs=16, seed=2)
    with torch.no_grad():
        x, y = images(model, 1, seed=5)
    attacker, eps = component("attacker", "square", queries=40, p=0.5), 0.02
    victim = Attacked(model, UNIT, image_shape=shape)
    model.asked.clear()
    with torch.no_grad():
        moved = attacker.perturb(victim, x, y, rng(1), eps)
        asked = list(model.asked)
        values = [float(margins(model.predict(z, generator()), y)) for z in asked]
    assert len(asked) == 40, "no success at this size, so that the whole budget is used"
    assert torch.equal(asked[0], x)
    for candidate in asked[1:]:
        delta = candidate - x
        border = (delta.abs() - eps).abs() < 1e-12
        assert (border | (candidate == 0) | (candidate == 1)).all()
    best, value = asked[1], values[1]
    for query, (candidate, now) in enumerate(zip(asked[2:], values[2:], strict=True), start=1):
        changed = ((candidate - best).abs() > 1e-12).reshape(shape if shape else (1, 1, 16))
        grid = changed.any(0) if changed.ndim == 3 else changed
        where = grid.nonzero()
        h, w = _window(0.5 * 0.5 ** _count_halvings(query, 40), *grid.shape)
        if len(where):
            assert (where.amax(0) - where.amin(0) < torch.tensor([h, w])).all()
        if now < value:
            best, value = candidate, now
    assert torch.equal(moved, best)
    if shape is None or len(shape) == 2:
        stripes = (asked[1] - x).reshape(shape or (1, 16))
        assert (stripes.sign() == stripes[:1].sign()).all()


def test_the_squares_shrink_by_the_printed_schedule():
    at = (0, 10, 11, 51, 201, 501, 1001, 2001, 4001, 6001, 8001)
    assert [_count_halvings(i, 10_000) for i in at] == [0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert [_count_halvings(i, 1000) for i in (1, 2, 5, 6)] == [0, 1, 1, 2]
    assert _window(0.8, 28, 28) == (25, 25)
    assert _window(1e-4, 28, 28) == (1, 1)
    assert _window(1.0, 4, 9) == (4, 6)
    assert _window(0.25, 1, 16) == (1, 4)


def test_a_broken_row_is_left_alone():
    model = Softmax()
    x, y = images(model, 30)
    wrong = (y + 1) % 3
    for name in ("deepfool", "square"):
        assert torch.equal(
            component("attacker", name).perturb(Attacked(model, UNIT), x, wrong, rng(), 0.2), x
        )
    moved = component("attacker", "cw").perturb(Attacked(model, UNIT), x, wrong, rng(), 0.5)
    assert_close(moved, x, atol=1e-5, rtol=0)


def test_who_knows_more_breaks_more():
    """Noise < more noise; noise < squares < PGD; DeepFool and C&W near PGD; Langevin samples above
    noise, below PGD."""
    # Two classes: with more, log p(y|x) can lead away from the class whose boundary is nearest, and
    # DeepFool wins.
    model = Softmax(inputs=16, classes=2, seed=4)
    # units that do not saturate inside the ball: the gradient leads to the best corner
    model.w = 0.3 * model.w
    x, y = images(model, 200)
    victim = Attacked(model, UNIT, image_shape=(4, 4))

    def breaks(name: str, eps: float, **keys) -> float:
        return share_broken(
            model, component("attacker", name, **keys).perturb(victim, x, y, rng(), eps), y
        )

    noise, more = breaks("random_noise", 0.1), breaks("random_noise", 0.1, repeats=20)
    squares, pgd = breaks("square", 0.1, queries=300), breaks("pgd", 0.1)
    assert noise < more < squares <= pgd
    assert noise < breaks("sgld_attack", 0.1) <= pgd
    assert pgd - 0.1 < breaks("deepfool", 0.1, steps=10) <= pgd
    l2 = breaks("pgd", 0.25, norm="l2")
    assert l2 - 0.05 < breaks("cw", 0.25) <= l2 + 0.05
    assert l2 - 0.1 < breaks("deepfool", 0.25, norm="l2") <= l2


def test_noise_drowns_the_langevin_steps_at_the_printed_temperature():
    model = Softmax(inputs=16, seed=4)
    x, y = images(model, 200)
    left = [
        share_broken(
            model,
            component("attacker", "sgld_attack", temperature=t).perturb(
                Attacked(model), x, y, rng(), 0.1
            ),
            y,
        )
        for t in (0.0, 0.001, 1.0)
    ]
    assert left[2] < 0.7 * min(left[:2])


def test_targets_are_reached():
    model = Softmax()
    x, y = images(model, 40)
    for name, eps, keys in [("cw", 1.5, {}), ("square", 0.8, {"queries": 300})]:
        moved = component("attacker", name, target=2, **keys).perturb(
            Attacked(model, UNIT), x, y, rng(), eps
        )
        before, after = (
            (model.predict(z, generator()).probs.argmax(-1) == 2).double().mean()
            for z in (x, moved)
        )
        assert after > max(before + 0.3, 0.8)
