"""Security evaluation curve: scores of a classifier by size of an attack (Biggio and Roli 2018).

Attacks that fail because of a defect (a wrong gradient, a missing bound) look like robustness, so
the checks of ``security_checks`` run with every curve, and their verdict is part of the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from components.attackers.attacked import Attacked
from components.attackers.evasion.worst_case import WorstCase, find_single_target, strongest
from components.attackers.input_space import input_space, require_norm
from components.attackers.words.changes import victim_as_attacked
from components.contracts.attackers import Evasion
from components.contracts.checks import Check
from components.contracts.costs.queries import Queries, counting_queries
from components.contracts.posteriors import Predicts
from components.contracts.predictive import Categorical
from components.contracts.progress import count_parts
from components.contracts.streams import Rng
from components.contracts.victim import Victim
from components.errors import ConfigMismatchError
from components.evaluation.security.certificate import Certificate, certify
from components.evaluation.security.checks import (
    check_certificates,
    curve_checks,
    half_accuracy_eps,
)
from components.evaluation.security.curve_scores import (
    accuracy,
    attacked_scores,
    certified_scores,
    check_logits,
    correct_predictions,
    hit_scores,
)
from components.evaluation.security.threat import Threat
from components.evaluation.security.victim_checks import victim_checks
from components.problems.supervised import Supervised

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class SecurityCurve:
    """Rows by ε and their checks."""

    # eps, accuracy, random_accuracy, worst_case_accuracy (a label counts as wrong if the attack or
    # the noise of any size up to ε changes it), unpredicted (inputs without a finite prediction,
    # which count as broken and are omitted from log_likelihood, entropy and ece), for a posterior
    # with bounds certified_accuracy (labels that no attack of size ε changes), certificate_gap and
    # certificate (its method), for a smoothed one abstained (labels without a radius),
    # log_likelihood, entropy, ece, success_rate, max_perturbation (in the attack's norm); for an
    # attack with a target target_reached, the share of labels of other classes classified as the
    # target, and random_target_reached under noise; if the attack does not know the defence,
    # undefended_accuracy and undefended_random_accuracy of the attacked classifier; knowledge; for
    # an attack with members, accuracy/<member> and knowledge/<member>
    rows: pd.DataFrame
    checks: list[Check]
    # by ε, the observed labels that are correctly predicted under attack [labels] bool
    right: dict[float, Tensor]
    queries: Queries  # costs of the attack at all sizes above 0

    @property
    def verdict(self) -> bool:
        """True if no check failed."""
        return all(check.passed is not False for check in self.checks)


def security_curve(
    problem: Supervised,
    posterior: Predicts,
    attacker: Evasion,
    threat: Threat,
    rng: Rng,
) -> SecurityCurve:
    """Attack the test set at every ε of the threat and at 0; predictions use the draws of the clean
    evaluation.

    An attack that does not know the defence (``against: undefended``) targets a different
    classifier from the evaluated one.  Its success is judged on the targeted classifier, because a
    defence that expects the attack may be more accurate at attacked inputs than at clean ones.

    Every ε starts the attack stream from the same state, which is restored at the end: curves
    compare attacks of different sizes on the same draws, and evaluation does not affect training.

    Raises:
        ConfigMismatchError: the labels are real-valued, a size is larger than the inputs' range, or
        the victim does not return logits.
    """
    import pandas as pd

    if problem.target == "real":
        raise ConfigMismatchError(
            f"attacker={attacker.name}: a security evaluation curve requires class labels, but "
            f"labels of {problem.name} are real"
        )
    threat.check(problem)
    attacker = attacker.with_problem(problem, rng)
    test = problem.test
    space = input_space(problem)
    victim = build_victim(problem, posterior, attacker)
    y = torch.where(test.mask, test.y, -1)
    attack_state = rng.attack.get_state()
    fresh = rng.at("attack", 0).get_state()
    aim = victim_as_attacked(
        victim, attacker.looks_at()
    ).posterior  # of the victim, or of the defended classifier
    target = find_single_target(attacker)

    def predict(x: Tensor, by: Predicts = posterior) -> Categorical:
        predictive = problem.predictive_at(by, x, rng)
        assert isinstance(predictive, Categorical)
        return predictive

    sizes = sorted({0.0, *threat.sizes})
    several = attacker.members_by_label if isinstance(attacker, WorstCase) else {}
    n_parts = len(sizes) * max(1, len(several)) * len(test.x.split(problem.evaluation_chunk))
    with torch.no_grad(), count_parts(n_parts + 1) as begin:
        clean = predict(test.x)
        check_logits(clean)
        standing = right = correct_predictions(clean, y)
        rows = []
        extremes = []
        checks = []
        correct_by_eps: dict[float, Tensor] = {}
        contradictions: dict[float, int] = {}
        certificate: Certificate | None = None
        queries = Queries()
        try:
            for eps in sizes:
                with counting_queries(queries if eps > 0 else Queries()):
                    attacked, members = _attack_test_set(
                        attacker=attacker,
                        victim=victim,
                        problem=problem,
                        y=y,
                        rng=rng,
                        eps=eps,
                        fresh=fresh,
                        begin=begin,
                    )
                noisy = space.perturb_at_random(test.x, y, eps, threat.norm, rng.at("attack", 1))
                largest_shift = float(space.size(test.x, attacked, threat.norm).max())
                after = predict(attacked)
                correct_by_eps[eps] = correct_predictions(after, y)[y >= 0]
                noise = predict(noisy) if eps > 0 else after  # inputs are unchanged at ε = 0
                standing = standing & correct_predictions(after, y) & correct_predictions(noise, y)
                row: dict[str, float | str] = {"eps": eps, **hit_scores(after, y, target)}
                row |= _prefix("random_", hit_scores(noise, y, target))
                row |= attacked_scores(after, y, right, standing)
                certificate = certify(problem, posterior, y, threat.norm, eps, rng, certificate)
                if certificate is not None:
                    row |= certified_scores(certificate, y, row)
                    contradictions[eps] = certificate.count_contradictions(y, after, noise)
                row["max_perturbation"] = largest_shift
                if aim is not posterior:
                    aim_scores = hit_scores(predict(attacked, aim), y, target)
                    aim_scores |= _prefix("random_", hit_scores(predict(noisy, aim), y, target))
                    row |= _prefix("undefended_", aim_scores)
                for label, x in members.items():
                    hits = hit_scores(predict(x), y, target)
                    row |= {f"{name}/{label}": value for name, value in hits.items()}
                row["knowledge"] = attacker.knowledge_used()
                for label, member in several.items():
                    row[f"knowledge/{label}"] = member.knowledge_used()
                rows.append(row)
                extremes.append((float(attacked.min()), float(attacked.max())))
            table = pd.DataFrame(rows)
            begin("checks of the attack")
            checks += curve_checks(attacker, table, accuracy(clean, y), extremes, problem)
            checks += check_certificates(contradictions, int((y >= 0).sum()))
            eps = half_accuracy_eps(table)
            if space.smooth and eps > 0:
                rng.attack.set_state(fresh)
                checks += victim_checks(
                    attacker=attacker,
                    victim=victim,
                    problem=problem,
                    y=y,
                    rng=rng,
                    norm=require_norm(threat.norm),
                    eps=eps,
                    target=target,
                )
        finally:
            rng.attack.set_state(attack_state)
    return SecurityCurve(table, checks, correct_by_eps, queries)


def build_victim(problem: Supervised, posterior: Predicts, attacker: Evasion) -> Attacked:
    """The victim of an attacker for a posterior.

    It has the bounds of the inputs and the attacker's own expectation over draws.
    """
    return Attacked(posterior, problem.bounds, attacker.expects(), problem.image_shape)


def _attack_test_set(
    attacker: Evasion,
    victim: Victim,
    problem: Supervised,
    y: Tensor,
    rng: Rng,
    eps: float,
    fresh: Tensor,
    begin: Callable[[str], None],
) -> tuple[Tensor, dict[str, Tensor]]:
    """x' of the test set [B, D] and, for each member of an attack, its own x'.

    Members are judged by the predictions of the evaluation, so that none is stronger than the whole
    attack.
    """
    x = problem.test.x
    size = problem.evaluation_chunk

    def score_attack(attack: Evasion, seen: Victim) -> Tensor:
        rng.attack.set_state(fresh)
        parts = []
        for part, label in zip(x.split(size), y.split(size), strict=True):
            begin(f"{attack.name}, ε = {eps:g}")
            # copies: an attack may change its inputs in place
            parts.append(attack.perturb(seen, part.clone(), label.clone(), rng, eps))
        return torch.cat(parts)

    if not isinstance(attacker, WorstCase):
        return score_attack(attacker, victim), {}
    each = {
        label: score_attack(member, victim.facing(member.expects()))
        for label, member in attacker.members_by_label.items()
    }
    chunks = zip(*(z.split(size) for z in each.values()), y.split(size), strict=True)
    target = find_single_target(attacker)
    best = [
        strongest(victim, zs, label, rng.at("evaluation", i), target)
        for i, (*zs, label) in enumerate(chunks)
    ]
    return torch.cat(best), each


def _prefix(prefix: str, scores: dict[str, float]) -> dict[str, float]:
    return {f"{prefix}{name}": value for name, value in scores.items()}
