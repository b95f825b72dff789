"""Security evaluation curve: how a classifier does as evasion attacks grow (Biggio and Roli 2018).

Attacks that fail for a bad reason (a broken gradient, a forgotten bound) look like robustness, so cheap checks in the
spirit of Carlini et al. (2019) run with every curve and their verdict is part of the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd
import torch
from torch import Tensor

from components.attackers.victim import Victim
from components.figures.security_curve import security_curve_figure
from components.interfaces import Attacker, Rng
from components.predictive import Categorical
from components.trouble import Misfit

if TYPE_CHECKING:
    from components.problems.supervised import Supervised

SLACK = 0.01  # accuracy may rise by this much between neighbouring ε before the curve is called not falling


@dataclass(frozen=True)
class SecurityCurve:
    """Rows by ε and the checks made on them."""

    rows: pd.DataFrame  # eps, accuracy, random_accuracy, log_likelihood, entropy, success_rate, max_perturbation
    checks: pd.DataFrame  # check, passed, detail

    @property
    def verdict(self) -> bool:
        return bool(self.checks["passed"].all())


def security_curve(attacker: Any, posterior: Any, problem: Supervised, rng: Rng) -> SecurityCurve:
    """Attacks the test set at every ε of the attacker, and at 0; predictions use the draws of the clean evaluation.

    Every ε starts the attack stream anew from the same state, which is put back at the end: curves compare attacks of
    different sizes on the same draws, and evaluating does not change training.

    Raises:
        ValueError: the labels are real-valued.
    """
    if problem.target == "real":
        raise Misfit(
            f"attacker={attacker.name}: a security evaluation curve needs class labels, those of {problem.name} are real"
        )
    test, victim = problem.test, Victim(posterior, problem.bounds, getattr(attacker, "expectation", "predictive"))
    y = torch.where(test.mask, test.y, -1)
    before, fresh = rng.attack.get_state(), rng.at("attack", 0).get_state()
    signs = torch.randint(2, test.x.shape, generator=rng.at("attack", 1), device=test.x.device).to(test.x) * 2 - 1

    def predict(x: Tensor) -> Categorical:
        predictive = problem.predict(posterior, x, rng)
        assert isinstance(predictive, Categorical)
        return predictive

    with torch.no_grad():
        clean = predict(test.x)
        right = _correct(clean, y)
        rows, extremes = [], []
        try:
            for eps in sorted({0.0, *attacker.eps}):
                rng.attack.set_state(fresh)
                parts = zip(test.x.split(problem.evaluation_chunk), y.split(problem.evaluation_chunk), strict=True)
                attacked = torch.cat([attacker.perturb(victim, x, label, rng, eps) for x, label in parts])
                if problem.domain == "binary":  # words, of which the attack changes so many, and the control as many
                    random = predict(attacker.random(test.x, y, eps, rng.at("attack", 1)))
                    moved = float((attacked != test.x).sum(1).max())
                else:
                    random = predict(victim.clip(test.x + eps * signs))
                    moved = float((attacked - test.x).abs().max())
                rows.append({"eps": eps, **_row(predict(attacked), random, y, right), "max_perturbation": moved})
                extremes.append((float(attacked.min()), float(attacked.max())))
        finally:
            rng.attack.set_state(before)
    table = pd.DataFrame(rows)
    accuracy = float(right[y >= 0].double().mean())
    return SecurityCurve(table, pd.DataFrame(_checks(table, accuracy, extremes, problem)))


def _correct(predictive: Categorical, y: Tensor) -> Tensor:
    return predictive.probs.argmax(-1) == y  # [B, T]


def _row(predictive: Categorical, random: Categorical, y: Tensor, right: Tensor) -> dict[str, float]:
    seen = y >= 0
    correct = _correct(predictive, y)
    fooled = right & ~correct
    return {
        "accuracy": float(correct[seen].double().mean()),
        "random_accuracy": float(_correct(random, y)[seen].double().mean()),
        "log_likelihood": float(predictive.log_prob(y.clamp_min(0))[seen].double().mean()),
        "entropy": float(predictive.entropy[seen].double().mean()),
        "success_rate": float(fooled[seen].sum()) / max(float(right[seen].sum()), 1.0),
    }


def _checks(rows: pd.DataFrame, clean: float, extremes: list[tuple[float, float]], problem: Supervised) -> list[dict]:
    """The sanity checks: each a name, whether it passed, and the numbers that say so."""
    rounding = 8 * torch.finfo(problem.test.x.dtype).eps * (1 + float(problem.test.x.abs().max()))
    excess = float((rows["max_perturbation"] - rows["eps"]).max())
    low, high = min(e[0] for e in extremes), max(e[1] for e in extremes)
    rise = float(rows["accuracy"].diff().max()) if len(rows) > 1 else 0.0
    last, at_zero = rows.iloc[-1], float(rows["accuracy"].iloc[0])
    checks = [
        ("an attack of size 0 leaves the accuracy as it is", at_zero == clean, f"{at_zero:.4f} against {clean:.4f}"),
        ("no input moves by more than ε", excess <= rounding, f"largest excess {excess:.2g}"),
        ("accuracy falls as ε grows", rise <= SLACK, f"largest rise {rise:+.4f}"),
        (
            "the attack beats random signs of the same size",
            bool(last["eps"] == 0 or last["accuracy"] <= last["random_accuracy"]),
            f"{last['accuracy']:.4f} against {last['random_accuracy']:.4f} at ε = {last['eps']:g}",
        ),
    ]
    if problem.bounds is not None:
        inside = problem.bounds[0] <= low and high <= problem.bounds[1]
        checks.append(("attacked inputs stay in bounds", inside, f"[{low:.4g}, {high:.4g}] in {list(problem.bounds)}"))
    return [{"check": name, "passed": bool(passed), "detail": detail} for name, passed, detail in checks]


def evaluate(problem: Supervised, posterior: Any, rng: Rng) -> tuple[dict[str, float], dict[str, Any], dict[str, Any]]:
    """(scores, figures, tables) of the problem's own evasion attacker; scores are named "robust_accuracy/eps=0.10"."""
    attacker = problem.attacker
    assert isinstance(attacker, Attacker)
    curve = security_curve(attacker, posterior, problem, rng)
    scores: dict[str, float] = {}
    for row in curve.rows.to_dict("records"):
        if row["eps"] > 0:
            at = f"eps={row['eps']:.2f}" if round(row["eps"], 2) == row["eps"] else f"eps={row['eps']:g}"
            scores[f"robust_accuracy/{at}"] = row["accuracy"]
            scores[f"robust_nlpp/{at}"] = -row["log_likelihood"]
            scores[f"attack_success/{at}"] = row["success_rate"]
    scores["robust_accuracy"] = float(curve.rows["accuracy"].iloc[-1])  # at the largest ε
    scores["attack_checks_passed"] = float(curve.verdict)
    figures = {"security_curve": security_curve_figure(curve.rows, attacker.name, curve.verdict)}
    return scores, figures, {"security_curve": curve.rows, "attack_checks": curve.checks}
