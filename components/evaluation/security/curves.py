"""Security evaluation curve: scores of a classifier by size of an attack (Biggio and Roli 2018).

Attacks that fail because of a defect (a wrong gradient, a missing bound) look like robustness, so
the checks of ``security_checks`` run with every curve, and their verdict is part of the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
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
    CurveRow,
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
    problem: Supervised, posterior: Predicts, attacker: Evasion, threat: Threat, rng: Rng
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
    sizes = sorted({0.0, *threat.sizes})
    n_attacks = len(sizes) * max(1, len(_members(attacker)))
    n_parts = n_attacks * len(problem.test.x.split(problem.evaluation_chunk))
    attack_state = rng.attack.get_state()
    with torch.no_grad(), count_parts(n_parts + 1) as begin:
        evaluation = SecurityEvaluation(problem, posterior, attacker, threat, rng, begin)
        try:
            for eps in sizes:
                evaluation.add_row(eps)
            table = pd.DataFrame(evaluation.rows)
            begin("checks of the attack")
            checks = evaluation.checks(table)
        finally:
            rng.attack.set_state(attack_state)
    return SecurityCurve(table, checks, evaluation.right, evaluation.queries)


def build_victim(problem: Supervised, posterior: Predicts, attacker: Evasion) -> Attacked:
    """The victim of an attacker for a posterior.

    It has the bounds of the inputs and the attacker's own expectation over draws.
    """
    return Attacked(posterior, problem.bounds, attacker.gradient_source(), problem.image_shape)


def _members(attacker: Evasion) -> dict[str, Evasion]:
    """Members of several attacks by name; none for a single attack."""
    return attacker.members_by_label if isinstance(attacker, WorstCase) else {}


@dataclass
class SecurityEvaluation:
    """Rows of a security curve, attacked in increasing order of ε."""

    problem: Supervised
    posterior: Predicts
    attacker: Evasion
    threat: Threat
    rng: Rng
    begin: Callable[[str], None]  # a part of the work
    rows: list[CurveRow] = field(default_factory=list)
    right: dict[float, Tensor] = field(default_factory=dict)  # as in ``SecurityCurve``
    extremes: list[tuple[float, float]] = field(default_factory=list)  # of the attacked inputs
    contradictions: dict[float, int] = field(default_factory=dict)  # of certificates, by ε
    certificate: Certificate | None = None
    queries: Queries = field(default_factory=Queries)

    def __post_init__(self) -> None:
        test = self.problem.test
        self.x = test.x
        self.y = torch.where(test.mask, test.y, -1)
        self.space = input_space(self.problem)
        self.victim = build_victim(self.problem, self.posterior, self.attacker)
        # of the victim, or of the defended classifier
        self.aim = victim_as_attacked(self.victim, self.attacker.targeted_predictions()).posterior
        self.target = find_single_target(self.attacker)
        self.fresh = self.rng.at("attack", 0).get_state()
        clean = self._predict(self.x, self.posterior)
        check_logits(clean)
        self.clean = correct_predictions(clean, self.y)  # [B, T] bool
        # correct under every attack and noise until now [B, T] bool
        self.standing = self.clean

    def add_row(self, eps: float) -> None:
        """Attack the test set at the next larger size."""
        norm = self.threat.norm
        with counting_queries(self.queries if eps > 0 else Queries()):
            attacked, by_member = self._attack(eps)
        noisy = self.space.perturb_at_random(self.x, self.y, eps, norm, self.rng.at("attack", 1))
        after = self._predict(attacked, self.posterior)
        noise = after  # inputs are unchanged at ε = 0
        if eps > 0:
            noise = self._predict(noisy, self.posterior)
        correct = correct_predictions(after, self.y)
        self.right[eps] = correct[self.y >= 0]
        self.standing = self.standing & correct & correct_predictions(noise, self.y)
        row = {"eps": eps, **self._hits(after), **self._hits(noise, "random_")}
        row |= attacked_scores(after, self.y, self.clean, self.standing)
        self.certificate = certify(
            self.problem, self.posterior, self.y, norm, eps, self.rng, self.certificate
        )
        if self.certificate is not None:
            row |= certified_scores(self.certificate, self.y, row)
            self.contradictions[eps] = self.certificate.count_contradictions(self.y, after, noise)
        row["max_perturbation"] = float(self.space.size(self.x, attacked, norm).max())
        if self.aim is not self.posterior:
            for prefix, x in {"undefended_": attacked, "undefended_random_": noisy}.items():
                row |= self._hits(self._predict(x, self.aim), prefix)
        for label, x in by_member.items():
            row |= self._hits(self._predict(x, self.posterior), suffix=f"/{label}")
        row["knowledge"] = self.attacker.knowledge_used()
        for label, member in _members(self.attacker).items():
            row[f"knowledge/{label}"] = member.knowledge_used()
        self.rows.append(row)
        self.extremes.append((float(attacked.min()), float(attacked.max())))

    def checks(self, table: pd.DataFrame) -> list[Check]:
        """Checks of the curve and, at an informative size, of the victim."""
        is_labelled = self.y >= 0
        clean = float(self.clean[is_labelled].double().mean())
        checks = curve_checks(self.attacker, table, clean, self.extremes, self.problem)
        checks += check_certificates(self.contradictions, int(is_labelled.sum()))
        eps = half_accuracy_eps(table)
        if self.space.smooth and eps > 0:
            self.rng.attack.set_state(self.fresh)
            checks += victim_checks(
                attacker=self.attacker,
                victim=self.victim,
                problem=self.problem,
                y=self.y,
                rng=self.rng,
                norm=require_norm(self.threat.norm),
                eps=eps,
                target=self.target,
            )
        return checks

    def _predict(self, x: Tensor, by: Predicts) -> Categorical:
        predictive = self.problem.predictive_at(by, x, self.rng)
        assert isinstance(predictive, Categorical)
        return predictive

    def _hits(self, predictive: Categorical, prefix: str = "", suffix: str = "") -> CurveRow:
        hits = hit_scores(predictive, self.y, self.target)
        return {f"{prefix}{name}{suffix}": value for name, value in hits.items()}

    def _attack(self, eps: float) -> tuple[Tensor, dict[str, Tensor]]:
        """x' of the test set [B, D] and, for each member of an attack, its own x'.

        Members are judged by the predictions of the evaluation, so that none is stronger than the
        whole attack.
        """
        members = _members(self.attacker)
        if not members:
            return self._perturb(self.attacker, self.victim, eps), {}
        each = {
            label: self._perturb(member, self.victim.facing(member.gradient_source()), eps)
            for label, member in members.items()
        }
        size = self.problem.evaluation_chunk
        chunks = zip(*(z.split(size) for z in each.values()), self.y.split(size), strict=True)
        best = [
            strongest(self.victim, zs, label, self.rng.at("evaluation", i), self.target)
            for i, (*zs, label) in enumerate(chunks)
        ]
        return torch.cat(best), each

    def _perturb(self, attack: Evasion, victim: Victim, eps: float) -> Tensor:
        """x' of one attack, from the first state of the attack stream."""
        self.rng.attack.set_state(self.fresh)
        size = self.problem.evaluation_chunk
        parts = []
        for x, y in zip(self.x.split(size), self.y.split(size), strict=True):
            self.begin(f"{attack.name}, ε = {eps:g}")
            # copies: an attack may change its inputs in place
            parts.append(attack.perturb(victim, x.clone(), y.clone(), self.rng, eps))
        return torch.cat(parts)
