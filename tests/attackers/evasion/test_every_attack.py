"""Rules of every evasion attack: ball, bounds, repeatability, missing labels and strength."""

from importlib.util import find_spec

import pytest
import torch
from support.runs.configured import component, generator
from support.small.small_victims import UNIT, find_broken, make_rng, make_victim, perturb
from torch.testing import assert_close

from components.attackers.attacked import Attacked
from components.attackers.norms import NORMS

SIZES = {"linf": 0.2, "l2": 0.5, "l1": 1.0}
EVERY = [
    *(
        (name, {"norm": norm})
        for name in ("bim", "pgd", "pgd_momentum", "random_noise")
        for norm in NORMS
    ),
    *(("deepfool", {"norm": norm}) for norm in ("linf", "l2")),
    *((f"{name}_pgd", {"norm": "l2"}) for name in ("foolbox", "torchattacks") if find_spec(name)),
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


@pytest.mark.parametrize(("name", "keys"), EVERY)
def test_attacks_stay_in_ball_and_are_reproducible(name, keys):
    model, x, y = make_victim(80, draws=2)
    # at the bounds
    x[0] = 0.0
    x[1] = 1.0
    attacker = component("attacker", name, **keys)
    victim = Attacked(model, UNIT)
    eps = SIZES[attacker.measure()]
    first, repeat = (attacker.perturb(victim, x, y, make_rng(), eps) for _ in range(2))
    assert first.isfinite().all()
    assert NORMS[attacker.measure()].size(first - x).max() <= eps * (1 + 1e-9)
    assert 0 <= first.min() <= first.max() <= 1
    assert torch.equal(first, repeat)
    assert torch.equal(attacker.perturb(victim, x, y, make_rng(), 0.0), x)


@pytest.mark.parametrize(("name", "keys"), EVERY)
def test_attacks_accept_missing_labels_and_no_rows(name, keys):
    model, x, y = make_victim(6)
    y[:3] = -1
    assert perturb(name, model, x, y, 0.2, **keys).isfinite().all()
    assert len(perturb(name, model, x[:0], y[:0], 0.2, **keys)) == 0


def test_attacks_leave_broken_rows_unchanged():
    model, x, y = make_victim(30)
    wrong = (y + 1) % 3
    for name in ("deepfool", "square"):
        assert torch.equal(perturb(name, model, x, wrong, 0.2), x)
    assert_close(perturb("cw", model, x, wrong, 0.5), x, atol=1e-5, rtol=0)


def test_attacks_with_more_knowledge_break_more():
    """Noise < more noise; noise < squares < PGD; DeepFool and C&W near PGD; Langevin samples above
    noise, below PGD."""
    # With more than two classes, log p(y|x) can lead away from the class with the nearest
    # boundary, and DeepFool wins.
    model, x, y = make_victim(200, inputs=16, classes=2, seed=4, scale=0.3)

    def share_broken(name, eps, **keys):
        x_adv = perturb(name, model, x, y, eps, shape=(4, 4), **keys)
        return float(find_broken(model, x_adv, y).double().mean())

    noise, more = (share_broken("random_noise", 0.1, repeats=n) for n in (1, 20))
    squares = share_broken("square", 0.1, queries=300)
    pgd = share_broken("pgd", 0.1)
    assert noise < more < squares <= pgd
    assert noise < share_broken("sgld_attack", 0.1) <= pgd
    assert pgd - 0.1 < share_broken("deepfool", 0.1, steps=10) <= pgd
    l2 = share_broken("pgd", 0.25, norm="l2")
    assert l2 - 0.05 < share_broken("cw", 0.25) <= l2 + 0.05
    assert l2 - 0.1 < share_broken("deepfool", 0.25, norm="l2") <= l2


@pytest.mark.parametrize(
    ("name", "eps", "keys"), [("cw", 1.5, {}), ("square", 0.8, {"queries": 300})]
)
def test_attacks_reach_targets(name, eps, keys):
    model, x, y = make_victim()
    x_adv = perturb(name, model, x, y, eps, target=2, **keys)
    clean_rate, after = (
        (model.predict(z, generator()).guess == 2).double().mean() for z in (x, x_adv)
    )
    assert after > max(clean_rate + 0.3, 0.8)
