"""Security evaluation curve: how a classifier does as evasion attacks grow (Biggio and Roli 2018).

Attacks that fail for a bad reason (a broken gradient, a forgotten bound) look like robustness, so the checks of
``security_checks`` run with every curve and their verdict is part of the result.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd
import torch
from torch import Tensor

from components.attackers.evasion.worst_case import WorstCase, strongest
from components.attackers.norms import NORMS
from components.attackers.victim import Victim
from components.attackers.words.changes import seen_by
from components.contracts.predictive import Categorical
from components.contracts.roles import Attacker
from components.contracts.streams import Rng
from components.evaluation.security_checks import control, curve_checks, telling_size, victim_checks
from components.evaluation.threat import check_sizes
from components.figures.attacked_examples import attacked_examples_figure
from components.figures.security_curve import security_curve_figure
from components.metrics.classification import expected_calibration_error
from components.trouble import Misfit, Shortfall

if TYPE_CHECKING:
    from components.problems.supervised import Supervised

EXAMPLES = 6  # images that are shown under attack


@dataclass(frozen=True)
class SecurityCurve:
    """Rows by ε and the checks made on them."""

    # eps, accuracy, random_accuracy, worst_case_accuracy (no label that the attack or the noise of any size up to ε
    # changes counts as right), log_likelihood, entropy, ece, success_rate, max_perturbation (in the attack's norm); where
    # the attack does not know of the defence, undefended_accuracy and undefended_random_accuracy of the classifier it sees;
    # knowledge; of an attack with members, accuracy/<member> and knowledge/<member>
    rows: pd.DataFrame
    checks: pd.DataFrame  # check, passed, detail

    @property
    def verdict(self) -> bool:
        return bool(self.checks["passed"].all())


def security_curve(attacker: Any, posterior: Any, problem: Supervised, rng: Rng) -> SecurityCurve:
    """Attacks the test set at every ε of the attacker, and at 0; predictions use the draws of the clean evaluation.

    An attack that does not know of a defence (``against: undefended``) is aimed at another classifier than the one that
    is evaluated.  Whether it works shows in what it does to that one: a defence that expects it may well be right more
    often about attacked inputs than about clean ones.

    Every ε starts the attack stream anew from the same state, which is put back at the end: curves compare attacks of
    different sizes on the same draws, and evaluating does not change training.

    Raises:
        Misfit: the labels are real-valued, a size is larger than the inputs' range, the victim gives no logits.
    """
    if problem.target == "real":
        raise Misfit(
            f"attacker={attacker.name}: a security evaluation curve needs class labels, those of {problem.name} are real"
        )
    check_sizes(attacker, problem)
    if isinstance(attacker, Attacker):
        attacker = attacker.informed(problem, rng)
    test, victim = problem.test, _victim(attacker, posterior, problem)
    y = torch.where(test.mask, test.y, -1)
    before, fresh = rng.attack.get_state(), rng.at("attack", 0).get_state()
    norm = getattr(attacker, "norm", "linf")
    aim = seen_by(victim, getattr(attacker, "against", "defended")).posterior  # the victim's own, or what it defends

    def predict(x: Tensor, by: Any = posterior) -> Categorical:
        predictive = problem.predictive_at(by, x, rng)
        assert isinstance(predictive, Categorical)
        return predictive

    with torch.no_grad():
        clean = predict(test.x)
        _check_logits(clean)
        standing = right = _correct(clean, y)
        rows, extremes, checks = [], [], []
        try:
            for eps in sorted({0.0, *attacker.eps}):
                attacked, members = _attacked(attacker, victim, problem, y, rng, eps, fresh)
                if problem.domain == "binary":  # words, of which the attack changes so many, and the control as many
                    noisy = attacker.random(test.x, y, eps, rng.at("attack", 1))
                    moved = float((attacked != test.x).sum(1).max())
                else:
                    noisy = victim.clip(test.x + control(test.x, eps, norm, rng.at("attack", 1)))
                    moved = float(NORMS[norm].size(attacked - test.x).max())
                after = predict(attacked)
                noise = predict(noisy) if eps > 0 else after  # neither has changed anything
                standing = standing & _correct(after, y) & _correct(noise, y)
                row = {"eps": eps, **_row(after, noise, y, right, standing), "max_perturbation": moved}
                if aim is not posterior:
                    row["undefended_accuracy"] = _accuracy(predict(attacked, aim), y)
                    row["undefended_random_accuracy"] = _accuracy(predict(noisy, aim), y)
                row |= {f"accuracy/{label}": _accuracy(predict(x), y) for label, x in members.items()}
                row |= _knowledge(attacker)
                rows.append(row)
                extremes.append((float(attacked.min()), float(attacked.max())))
            table = pd.DataFrame(rows)
            checks += curve_checks(attacker, table, _accuracy(clean, y), extremes, problem)
            eps = telling_size(table)
            if problem.domain == "continuous" and eps > 0:
                rng.attack.set_state(fresh)
                checks += victim_checks(attacker, victim, problem, y, rng, norm, eps)
        finally:
            rng.attack.set_state(before)
    verdicts = [{"check": name, "passed": bool(passed), "detail": detail} for name, passed, detail in checks]
    return SecurityCurve(table, pd.DataFrame(verdicts))


def _victim(attacker: Any, posterior: Any, problem: Supervised) -> Victim:
    return Victim(posterior, problem.bounds, image_shape=problem.image_shape).facing(attacker)


def _attacked(
    attacker: Any, victim: Victim, problem: Supervised, y: Tensor, rng: Rng, eps: float, fresh: Tensor
) -> tuple[Tensor, dict[str, Tensor]]:
    """x' of the test set [B, D], and of each member of an attack that has some, as that member alone would find it.

    Members are judged by the very predictions that the evaluation makes, so that none is stronger than the whole."""
    x, size = problem.test.x, problem.evaluation_chunk

    def found(attack: Any, seen: Victim) -> Tensor:
        rng.attack.set_state(fresh)
        parts = zip(x.split(size), y.split(size), strict=True)
        return torch.cat([attack.perturb(seen, part, label, rng, eps) for part, label in parts])

    if not isinstance(attacker, WorstCase):
        return found(attacker, victim), {}
    each = {label: found(member, victim.facing(member)) for label, member in attacker.labelled.items()}
    chunks = zip(*(z.split(size) for z in each.values()), y.split(size), strict=True)
    best = [strongest(victim, zs, label, rng.at("evaluation", i)) for i, (*zs, label) in enumerate(chunks)]
    return torch.cat(best), each


def _knowledge(attacker: Any) -> dict[str, str]:
    """What an attack, and each of its members, knows of the victim."""
    members = attacker.labelled if isinstance(attacker, WorstCase) else {}
    whole = {"knowledge": getattr(attacker, "knowledge", "white box")}
    return whole | {f"knowledge/{label}": member.knowledge for label, member in members.items()}


def _check_logits(predictive: Categorical) -> None:
    """Probabilities in the place of logits would be flattened by another softmax, and the attack's gradient with them.

    Raises:
        Misfit: every row of logits is nonnegative and sums to one.
    """
    f = predictive.logits
    if bool((f >= 0).all()) and bool(((f.sum(-1) - 1).abs() < 1e-4).all()):
        raise Misfit(
            "model: its predictions hold probabilities (they sum to one) where logits belong; give their logarithms"
        )


def _correct(predictive: Categorical, y: Tensor) -> Tensor:
    return predictive.guess == y  # [B, T]


def _accuracy(predictive: Categorical, y: Tensor) -> float:
    return float(_correct(predictive, y)[y >= 0].double().mean())


def _row(predictive: Categorical, noise: Categorical, y: Tensor, right: Tensor, standing: Tensor) -> dict[str, float]:
    seen = y >= 0
    correct = _correct(predictive, y)
    fooled = right & ~correct
    return {
        "accuracy": _accuracy(predictive, y),
        "random_accuracy": _accuracy(noise, y),
        "worst_case_accuracy": float(standing[seen].double().mean()),
        "log_likelihood": float(predictive.log_prob(y.clamp_min(0))[seen].double().mean()),
        "entropy": float(predictive.entropy[seen].double().mean()),
        "ece": float(expected_calibration_error(predictive.probs.amax(-1)[seen], correct[seen])),
        "success_rate": float(fooled[seen].sum()) / max(float(right[seen].sum()), 1.0),
    }


def evaluate(problem: Supervised, posterior: Any, rng: Rng) -> tuple[dict[str, float], dict[str, Any], dict[str, Any]]:
    """(scores, figures, tables) of the problem's own evasion attacker; scores are named "robust_accuracy/eps=0.10", those of a
    member of several attacks "robust_accuracy/fgsm/eps=0.10"; "robust_accuracy" is that at the largest ε, and
    "mean_robust_accuracy" the mean over all ε > 0, by which settings can be chosen."""
    attacker = problem.attacker
    assert isinstance(attacker, Attacker)
    attacker = attacker.informed(problem, rng)
    curve = security_curve(attacker, posterior, problem, rng)
    scores: dict[str, float] = {}
    for row in curve.rows.to_dict("records"):
        if row["eps"] > 0:
            at = f"eps={row['eps']:.2f}" if round(row["eps"], 2) == row["eps"] else f"eps={row['eps']:g}"
            scores[f"robust_accuracy/{at}"] = row["accuracy"]
            scores[f"robust_nlpp/{at}"] = -row["log_likelihood"]
            scores[f"attack_success/{at}"] = row["success_rate"]
            scores[f"robust_ece/{at}"] = row["ece"]
            scores[f"robust_entropy/{at}"] = row["entropy"]
            for column in (str(c) for c in row if str(c).startswith("accuracy/")):  # of each member
                scores[f"robust_{column}/{at}"] = row[column]
    scores["entropy"] = float(curve.rows["entropy"].iloc[0])
    scores["robust_accuracy"] = float(curve.rows["accuracy"].iloc[-1])  # at the largest ε
    attacked = curve.rows["accuracy"][curve.rows["eps"] > 0]
    scores["mean_robust_accuracy"] = float(attacked.mean() if len(attacked) else curve.rows["accuracy"].iloc[0])
    scores["attack_checks_passed"] = float(curve.verdict)
    scores["robust_ece"] = float(curve.rows["ece"].iloc[-1])
    scores["worst_case_accuracy"] = float(curve.rows["worst_case_accuracy"].iloc[-1])
    if "undefended_accuracy" in curve.rows:
        scores["undefended_accuracy"] = float(curve.rows["undefended_accuracy"].iloc[0])
        scores["undefended_robust_accuracy"] = float(curve.rows["undefended_accuracy"].iloc[-1])
    figures = {"security_curve": security_curve_figure(curve.rows, attacker.name, curve.verdict)}
    if problem.image_shape is not None and problem.domain == "continuous":
        figures["attacked_examples"] = _examples(attacker, posterior, problem, rng, telling_size(curve.rows))
    failed = curve.checks[~curve.checks["passed"]]
    if len(failed):
        told = "; ".join(f"{name} ({detail})" for name, detail in zip(failed["check"], failed["detail"], strict=True))
        warnings.warn(
            Shortfall(f"the security evaluation is not to be trusted, of its checks these failed: {told}"), stacklevel=1
        )
    return scores, figures, {"security_curve": curve.rows, "attack_checks": curve.checks}


def _examples(attacker: Any, posterior: Any, problem: Supervised, rng: Rng, eps: float) -> Any:
    """The first test images, their perturbations of size ε and what they are taken for."""
    x, y = problem.test.x[:EXAMPLES], torch.where(problem.test.mask, problem.test.y, -1)[:EXAMPLES]
    before = rng.attack.get_state()
    rng.attack.set_state(rng.at("attack", 0).get_state())
    try:
        with torch.no_grad():
            attacked = attacker.perturb(_victim(attacker, posterior, problem), x, y, rng, eps)
            guesses = [problem.predictive_at(posterior, z, rng) for z in (x, attacked)]
    finally:
        rng.attack.set_state(before)
    labels = [g.guess[:, 0] for g in guesses if isinstance(g, Categorical)]
    assert problem.image_shape is not None
    return attacked_examples_figure(x, attacked, labels[0], labels[1], y[:, 0], problem.image_shape, eps, attacker.name)
