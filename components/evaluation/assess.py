"""Final assessment of a posterior: the problem's scores and figures, and those under attack."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import torch

from components.attackers.input_space import input_space
from components.contracts.attackers import Attacker, Evasion, Injection
from components.contracts.checks import NamedScores
from components.contracts.posteriors import FilteredStates, Predicts
from components.contracts.predictive import Categorical
from components.contracts.progress import report
from components.contracts.roles import Problem, TabulatingProblem
from components.contracts.streams import Rng
from components.evaluation.assessment import (
    Assessment,
    size_suffix,
    tabulate_attack,
    warn_of_failures,
)
from components.evaluation.replayed import PosteriorProvenance
from components.evaluation.security.checks import half_accuracy_eps
from components.evaluation.security.curves import SecurityCurve, build_victim, security_curve
from components.evaluation.security.filter_curves import assess_filter
from components.evaluation.security.threat import Threat
from components.metrics.names import COST_PREFIX
from components.problems.supervised import Supervised
from components.series.sequence import Sequence

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from components.evaluation.assessment import Drawing, Tabulating
    from components.figures.style import Figures

EXAMPLES = 6  # number of images shown under attack
# score -> column of the curve, at every ε > 0
BY_SIZE = {
    "robust_accuracy": "accuracy",
    "robust_nlpp": "nlpp",
    "attack_success": "success_rate",
    "target_reached": "target_reached",
    "robust_ece": "ece",
    "robust_entropy": "entropy",
    "certified_accuracy": "certified_accuracy",
    "certificate_gap": "certificate_gap",
}
# score -> column of the curve, at 0 (clean), at the largest ε, or its mean over all ε > 0 (at 0
# without any other)
WHOLE = {
    "entropy": ("entropy", "clean"),
    "robust_accuracy": ("accuracy", "largest"),
    "mean_robust_accuracy": ("accuracy", "mean"),
    "attack_checks_passed": ("checks_passed", "largest"),
    "robust_ece": ("ece", "largest"),
    "worst_case_accuracy": ("worst_case_accuracy", "largest"),
    "certified_accuracy": ("certified_accuracy", "largest"),
    "mean_certified_accuracy": ("certified_accuracy", "mean"),
    "abstained": ("abstained", "largest"),
    "undefended_accuracy": ("undefended_accuracy", "clean"),
    "undefended_robust_accuracy": ("undefended_accuracy", "largest"),
}
CANDIDATES = 60  # number of attacked test images from which those in the figure are chosen


def assess(
    problem: Problem,
    posterior: object,
    attacker: Attacker | None,
    threat: Threat | None,
    rng: Rng,
    figures: bool,
    made_by: PosteriorProvenance | None = None,
) -> Assessment:
    """Scores, tables and, if requested, figures of a posterior.

    They cover the problem and, at the sizes of the threat, a security evaluation by an
    evasion attacker, or by an attacker that spoofs the observations of a filter; the latter
    requires ``made_by``.
    """
    drawings = {"figures of the data": partial(problem.draw, posterior, rng)} if figures else {}
    tabulations: dict[str, Tabulating] = {}
    if figures and isinstance(problem, TabulatingProblem):
        tabulations = {"tables of the data": partial(problem.tables, posterior, rng)}
    report("scores")
    scores = problem.score(posterior, rng)
    plain = Assessment(scores, drawings=drawings, tabulations=tabulations)
    if isinstance(attacker, Injection) and threat is not None:
        assert isinstance(problem, Sequence), "check_pairs allows injections only with this problem"
        assert isinstance(posterior, FilteredStates), "and only with this posterior"
        assert made_by is not None
        return assess_filter(
            problem=problem,
            posterior=posterior,
            made_by=made_by,
            attacker=attacker,
            threat=threat,
            rng=rng,
            figures=figures,
        ).after(plain)
    if not isinstance(attacker, Evasion) or threat is None:
        return plain
    assert isinstance(problem, Supervised), (
        "check_pairs allows evasion attackers only with this problem"
    )
    assert isinstance(posterior, Predicts), "the problem's scores require it too"
    return assess_security(problem, posterior, attacker, threat, rng, figures).after(plain)


def assess_security(
    problem: Supervised,
    posterior: Predicts,
    attacker: Evasion,
    threat: Threat,
    rng: Rng,
    figures: bool = True,
) -> Assessment:
    """The security evaluation of a classifier.

    Scores are named "robust_accuracy/eps=0.10", and for a member of several attacks
    "robust_accuracy/fgsm/eps=0.10"; "robust_accuracy" is the score at the largest ε, and
    "mean_robust_accuracy" the mean over all ε > 0, for the choice of settings.  A posterior with
    bounds also has "certified_accuracy/eps=0.10", a lower bound of the accuracy under any attack of
    that size (``evaluation.certificate``), "certificate_gap", the distance to this attack, and
    "mean_certified_accuracy"; a smoothed one has "abstained", the share of labels without a radius.
    Costs of the attack over all ε > 0 are the rows that the victim predicts
    ("cost/attack_forwards") and differentiates ("cost/attack_gradients") for it, and CPU seconds,
    without the victim's training.

    Raises:
        ConfigMismatchError: as in ``security_curve``.
    """
    attacker = attacker.with_problem(problem, rng)
    curve = security_curve(problem, posterior, attacker, threat, rng)
    rows = curve.rows.assign(nlpp=-curve.rows["log_likelihood"], checks_passed=float(curve.verdict))
    columns = BY_SIZE | {f"robust_{c}": c for c in rows if str(c).startswith("accuracy/")}
    scores: NamedScores = {}
    outcomes = {"accuracy": curve.right[0.0], "robust_accuracy": curve.right[max(curve.right)]}
    attacked = rows[rows["eps"] > 0]
    for row in attacked.to_dict("records"):
        suffix = size_suffix(row["eps"])
        outcomes[f"robust_accuracy/{suffix}"] = curve.right[row["eps"]]
        scores |= {f"{name}/{suffix}": row[c] for name, c in columns.items() if c in row}
    averaged = attacked if len(attacked) else rows
    for name, (column, place) in WHOLE.items():
        if column in rows:
            ends = {"clean": rows[column].iloc[0], "largest": rows[column].iloc[-1]}
            scores[name] = float(averaged[column].mean() if place == "mean" else ends[place])
    warn_of_failures(curve.checks)
    costs = {
        f"{COST_PREFIX}attack_forwards": curve.queries.forwards,
        f"{COST_PREFIX}attack_gradients": curve.queries.gradients,
        f"{COST_PREFIX}attack_cpu_seconds": curve.queries.cpu_seconds,
    }
    return Assessment(
        scores,
        curve.checks,
        outcomes,
        _drawings(problem, posterior, attacker, curve, rng) if figures else {},
        tabulate_attack(curve.rows, curve.checks),
        costs,
    )


def _drawings(
    problem: Supervised, posterior: Predicts, attacker: Evasion, curve: SecurityCurve, rng: Rng
) -> dict[str, Drawing]:
    """The curve and, for images, a few examples under attack."""

    def draw_curve() -> Figures:
        from components.figures.attacked.security_curve import security_curve_figure

        n_labels = len(curve.right[0.0])
        return {
            "security_curve": security_curve_figure(
                curve.rows, attacker.name, curve.verdict, n_labels
            )
        }

    def draw_examples() -> Figures:
        return {
            "attacked_examples": _examples(
                problem, posterior, attacker, rng, half_accuracy_eps(curve.rows)
            )
        }

    drawings: dict[str, Drawing] = {"figure security_curve": draw_curve}
    if problem.image_shape is not None and input_space(problem).smooth:
        drawings["figure attacked_examples"] = draw_examples
    return drawings


def _examples(
    problem: Supervised, posterior: Predicts, attacker: Evasion, rng: Rng, eps: float
) -> Figure:
    """A few test images, their perturbations of size ε and their predicted classes.

    They are chosen from the first ``CANDIDATES``; for half of them the attack changes the class.
    """
    from components.figures.attacked.attacked_examples import (
        attacked_examples_figure,
        choose_examples,
    )

    x = problem.test.x[:CANDIDATES]
    y = torch.where(problem.test.mask, problem.test.y, -1)[:CANDIDATES]
    state = rng.attack.get_state()
    rng.attack.set_state(rng.at("attack", 0).get_state())
    try:
        with torch.no_grad():
            attacked = attacker.perturb(
                build_victim(problem, posterior, attacker), x.clone(), y, rng, eps
            )
            guesses = [problem.predictive_at(posterior, z, rng) for z in (x, attacked)]
    finally:
        rng.attack.set_state(state)
    clean, attacked_classes = (g.guess[:, 0] for g in guesses if isinstance(g, Categorical))
    assert problem.image_shape is not None
    rows = choose_examples(clean, attacked_classes, y[:, 0], EXAMPLES)
    changed = int((clean != attacked_classes).sum())
    return attacked_examples_figure(
        x=x[rows],
        attacked=attacked[rows],
        before=clean[rows],
        after=attacked_classes[rows],
        y=y[rows, 0],
        shape=problem.image_shape,
        title=f"{attacker.name}, ε = {eps:g}: {changed} of the first {len(x)} test images change their class",
        class_names=problem.class_names,
    )
