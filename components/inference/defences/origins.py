"""Shared code of ``acra`` and ``dalvi``: a classifier that sums over the possible origins.

The origins are the emails that may have been changed into the observed one; the classifier is
generative.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import AfterValidator, PositiveInt
from torch import Tensor

from components.attackers.words.changes import change_sets, flip_words, possible
from components.attackers.words.integer_programme import falls
from components.contracts.capabilities import Generative
from components.contracts.predictive import Categorical
from components.contracts.requirements import Requirements
from components.contracts.roles import ZeroToOne
from components.contracts.victim import Direction
from components.inference.point.fit import Fit, FitState
from components.posteriors.fitted import FittedEstimator

LARGEST_ODDS = 700.0  # in nats, close to the logarithm of the largest float64
PAIRS = 1 << 21  # number of candidate origins in memory at a time
Attack = Callable[["Origins", torch.Generator], Tensor]


def _check_utilities(u: list[list[float]]) -> list[list[float]]:
    if len(u) != 2 or any(len(row) != 2 for row in u) or u[0][0] <= u[1][0] or u[1][1] <= u[0][1]:
        raise ValueError(
            f"utilities: must be [[u_00, u_01], [u_10, u_11]] with u_ij for decision i and "
            f"class j, u_00 > u_10 and u_11 > u_01 (correct decisions are better than errors), not {u}"
        )
    return u


Utilities = Annotated[list[list[float]], AfterValidator(_check_utilities)]


def is_utility_sensitive(
    model: Generative, fitted: dict[str, Tensor], u: list[list[float]]
) -> FittedEstimator[Generative]:
    """Classifier in which p(y|x) is largest for the decision of maximum expected utility (3.2).

    It predicts 1 if (u_11 − u_01) p(1|x) > (u_00 − u_10) p(0|x), so utilities act as class
    weights; with 0–1 utilities nothing changes.

    Source: Gallego (2021), eqs (3.2) and (3.3).
    """
    log_class = model.log_class(fitted)
    gains = log_class.new_tensor([u[0][0] - u[1][0], u[1][1] - u[0][1]])
    return FittedEstimator(model, {**fitted, "log_class": (log_class + gains.log()).log_softmax(0)})


@dataclass(frozen=True)
class Origins:
    """Pairs of an observed email x' and a possible origin x ∈ X', with all candidates that x could
    have been changed into."""

    mail: Tensor  # row of x' [P]
    sent: Tensor  # set of words that changes x into x', a row of the sets [P]
    log_p: Tensor  # log p_C(x|y_1) [P]
    absent: Tensor  # words absent from x [P, D] bool
    sets: Tensor  # [M, k]
    # log odds of r(z) for the z that each set makes from x; ∞ where it does not apply [P, M]
    odds: Tensor


def origins(
    classifier: FittedEstimator[Generative], x: Tensor, sets: Tensor, direction: Direction
) -> Origins:
    """Origins X' of each x' [B, D]: the emails that differ from it by at most k changes.

    If words were added, some of the words of x' are removed.  Log odds of naive Bayes are
    additive over words, so the log odds of all candidates of all origins are sums of k
    terms.
    """
    model = classifier.estimator
    fitted = classifier.fitted
    back = possible(1 - x if direction == "insertion" else x, sets, direction)
    mail, sent = back.nonzero(as_tuple=True)
    origin = flip_words(x[mail], sets[sent])  # [P, D]
    joint = model.log_conditional(fitted, origin)
    log_joint = joint + model.log_class(fitted)
    # [P, D + 1]
    gain = torch.cat([-falls(model, fitted, origin), torch.zeros_like(origin[:, :1])], 1)
    odds = (log_joint[:, 1] - log_joint[:, 0])[:, None] + sum(
        gain[:, column] for column in sets.T
    )  # [P, M]
    odds = odds.masked_fill(~possible(origin, sets, direction), torch.inf)
    return Origins(mail, sent, joint[:, 1], origin < 0.5, sets, odds)


@dataclass(frozen=True)
class AdversaryAwareClassifier:
    """An adversary-aware classifier: p(y_i) p(X' = x'|y_i), with the sum over origins in (3.9)."""

    undefended: FittedEstimator[Generative]  # utility-sensitive naive Bayes, unaware
    attack: Attack  # p_C(x'|x, y_1) of each pair of Origins [P]
    direction: Direction
    most: int  # number of changed words, k
    idle: float

    def predict(self, x: Tensor, generator: torch.Generator) -> Categorical:
        """p(y_2) p(x'|y_2) against p(y_1) Σ_{x ∈ X'} p_C(x'|x, y_1) p(x|y_1), for x' [B, D].

        Odds are clipped to e^±700, so that an email without possible origins has a finite
        log-probability.

        Source: Gallego (2021), eq. (3.9) and Algorithm 3.1."""
        model = self.undefended.estimator
        fitted = self.undefended.fitted
        sets = change_sets(x.shape[1], self.most).to(x.device)
        log_class = model.log_class(fitted)
        innocent = log_class[0] + model.log_conditional(fitted, x)[:, 0]
        malicious = torch.cat(
            [self._log_evidence_of_attacks(part, sets, generator) for part in self._parts(x, sets)]
        )
        logits = torch.stack([innocent, log_class[1] + malicious], -1)  # [B, 2]
        return Categorical(
            logits.maximum(logits.amax(-1, keepdim=True) - LARGEST_ODDS)[None, :, None]
        )

    def _parts(self, x: Tensor, sets: Tensor) -> list[Tensor]:
        """Chunks of rows small enough for their pairs of origins and candidates to fit in
        memory."""
        words = x if self.direction == "insertion" else torch.ones_like(x)
        n = words.sum(1)
        pairs = torch.stack([_choose(n, size) for size in range(self.most + 1)]).sum(0) * len(sets)
        part = (pairs.cumsum(0) / PAIRS).long()
        return list(x.split(torch.unique_consecutive(part, return_counts=True)[1].tolist()))

    def _log_evidence_of_attacks(
        self, x: Tensor, sets: Tensor, generator: torch.Generator
    ) -> Tensor:
        """log Σ_{x ∈ X'} p_C(x'|x, y_1) p(x|y_1) of x' [b, D]: [b]."""
        pairs = origins(self.undefended, x, sets, self.direction)
        # set 0 is empty
        p = (1 - self.idle) * self.attack(pairs, generator) + self.idle * (pairs.sent == 0)
        term = p.log() + pairs.log_p  # [P]
        most = x.new_full((len(x),), -torch.inf).scatter_reduce(0, pairs.mail, term, "amax")
        most = most.nan_to_num(neginf=0.0)
        return (
            x.new_zeros(len(x)).index_add(0, pairs.mail, (term - most[pairs.mail]).exp()).log()
            + most
        )


class OriginsDefence(Fit):
    """Base of defences that fit naive Bayes and sum over the possible origins of an email."""

    requires = Requirements(capabilities={Generative})

    changes: PositiveInt
    idle: ZeroToOne
    utilities: Utilities

    def aware(
        self, state: FitState, attack: Attack, direction: Direction
    ) -> AdversaryAwareClassifier:
        """The aware classifier on the fitted parameters."""
        assert isinstance(state.estimator, Generative)  # guaranteed by ``requires``
        assert state.fitted is not None, "the classifier is fitted in the first step"
        unaware = is_utility_sensitive(state.estimator, state.fitted, self.utilities)
        return AdversaryAwareClassifier(unaware, attack, direction, self.changes, self.idle)


def _choose(n: Tensor, size: int) -> Tensor:
    """n!/size!(n − size)! of small sizes."""
    out = torch.ones_like(n)
    for i in range(size):
        out = out * (n - i) / (i + 1)
    return out
