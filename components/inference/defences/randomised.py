"""A classifier drawn at random for each email, with minimax probabilities."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal

import torch
from pydantic import Field, PositiveInt
from torch import Tensor
from torch.nn.functional import one_hot

from components.attackers.words.changes import change_sets, flip_words, malicious, possible
from components.contracts.capabilities import Estimator
from components.contracts.predictive import Categorical, top_class
from components.contracts.problems import Batch
from components.contracts.requirements import Requirements
from components.contracts.roles import AboveZeroToOne, Info
from components.contracts.streams import Rng, seed_from
from components.contracts.victim import Direction
from components.inference.point.fit import Fit, FitState
from components.maths.spacing import row_numbers
from components.registry import register

FEWEST_VOTES = 1e-6  # probability of a class without votes
MEMBERS = 10  # maximum K: errors on an email have 2^K patterns


@dataclass(frozen=True)
class RandomisedClassifier:
    """K classifiers on subsets of words; each row is predicted by one drawn at random."""

    estimator: Estimator
    fitted: dict[str, Tensor]  # "masks" [K, D], "weights" [K], and the fits of the members [K, …]
    drawn: bool = True

    def members(self, x: Tensor) -> Tensor:
        """log p(y|x) by each member at x [B, D], [K, B, 1, C]."""
        each = []
        for k, mask in enumerate(self.fitted["masks"]):
            member = {key: value[k] for key, value in self.fitted.items()}
            predictive = self.estimator.predict_fitted(member, x * mask)
            assert isinstance(predictive, Categorical)
            each.append(predictive.log_probs)
        return torch.stack(each)

    def predict(self, x: Tensor, generator: torch.Generator) -> Categorical:
        """Prediction of the member k ~ q drawn for each row, or Σ_k q_k 1[member k predicts y]."""
        each = self.members(x)
        q = self.fitted["weights"].to(x)
        if self.drawn:
            k = torch.multinomial(q, len(x), replacement=True, generator=generator)
            return Categorical(each[k, row_numbers(x)][None])
        votes = one_hot(top_class(each) + 1, each.shape[-1] + 1)[..., 1:].to(x)
        return Categorical(torch.tensordot(q, votes, 1).clamp_min(FEWEST_VOTES).log()[None])

    @property
    def undefended(self) -> RandomisedClassifier:
        """The mixture as known to an attacker that does not observe the draws."""
        return replace(self, drawn=False)


def error_patterns(K: int) -> Tensor:
    """All patterns of errors of K members [2^K, K]; row c holds the binary digits of c."""
    return (torch.arange(2**K)[:, None] >> torch.arange(K) & 1).double()


def attacked_error(attainable: Tensor, q: Tensor) -> float:
    """Mean over n emails of max_c Σ_k q_k E_ck, over the patterns attainable [n, 2^K] bool."""
    return float((attainable * (error_patterns(len(q)) @ q)).amax(1).mean())


def best_mixture(attainable: Tensor, K: int) -> Tensor:
    """argmin_q of ``attacked_error`` [K], by the linear programme min Σ_i t_i, Σ_k q_k E_ck ≤
    t_i."""
    from scipy.optimize import linprog  # slow to import

    n = len(attainable)
    mail, code = attainable.nonzero(as_tuple=True)
    limits = torch.cat([error_patterns(K)[code], -one_hot(mail, n).double()], 1).numpy()
    solved = linprog([0] * K + [1] * n, limits, [0] * len(mail), [[1] * K + [0] * n], [1])
    return torch.from_numpy(solved.x[:K]).clamp_min(0)


@register("inference", "randomised")
class Randomised(Fit):
    """Randomised classification: one of K classifiers is drawn for each email, with probability q.

        q = argmin_q Σ_i max_{x' ∈ Z(x_i)} Σ_k q_k 1[h_k(x') ≠ y_i]

    This is a Stackelberg game: the classifier commits to q; the attacker, with knowledge of the h_k
    and q but not of the draw, sends the worst of all emails Z(x) with at most ``changes`` changed
    words; Z(x) = {x} for emails of class 0.  The sum is over the first ``mails`` training emails of
    each class, a linear programme.  If attacks on one member do not transfer to others, q is
    uniform; if one attack fools all, q selects the best member. ``mixture`` uses this q (optimal),
    the uniform one, or the best member (single); their mean errors in the game are recorded as
    ``attacked_error``, ``attacked_error_uniform`` and ``attacked_error_single``.  Each member is a
    fit of the model to a random ``share`` of the words; x' [B, D] in {0, 1}.

    ``attacker.against=undefended`` is the attacker of the game; with ``defended`` each candidate is
    tested against a newly drawn member.

    Source: Vorobeychik and Li (2014), with finitely many classifiers and attacks; Gallego
    (2021), section 3.3.2.
    """

    requires = Requirements(targets={"binary"}, required_traits={"binary_inputs": "changes words"})

    members: Annotated[int, Field(ge=1, le=MEMBERS)]
    share: AboveZeroToOne
    changes: PositiveInt
    direction: Direction
    mails: PositiveInt
    mixture: Literal["optimal", "uniform", "single"]

    def step(self, state: FitState, batch: Batch, rng: Rng) -> tuple[FitState, Info]:
        if state.fitted is not None:
            return state, {}
        K = self.members
        D = batch.x.shape[1]
        masks = torch.rand(K, D, generator=rng.init).argsort(1).argsort(1) < self.share * D
        masks = masks.to(batch.x)
        seed = seed_from(rng.init)
        fits = [state.estimator.fit(replace(batch, x=batch.x * mask), seed) for mask in masks]
        fitted = {key: torch.stack([fit[key] for fit in fits]) for key in fits[0]}
        fitted["masks"] = masks
        attainable = self.attack(RandomisedClassifier(state.estimator, fitted), batch)
        mixtures = {
            "optimal": best_mixture(attainable, K),
            "uniform": torch.full((K,), 1 / K, dtype=torch.float64),
            "single": min(torch.eye(K).double(), key=lambda q: attacked_error(attainable, q)),
        }
        fitted["weights"] = mixtures[self.mixture]
        info = {
            f"attacked_error_{name}": attacked_error(attainable, q) for name, q in mixtures.items()
        }
        return replace(state, fitted=fitted), {
            **info,
            "attacked_error": info[f"attacked_error_{self.mixture}"],
        }

    def attack(self, classifier: RandomisedClassifier, batch: Batch) -> Tensor:
        """Error patterns that an attacker can reach from each email of the game [n, 2^K] bool."""
        spam = malicious(batch.y)
        sets = change_sets(batch.x.shape[1], self.changes).to(batch.x.device)
        rows = torch.cat([side.nonzero()[: self.mails, 0] for side in (spam, ~spam)])
        attainable = torch.zeros(len(rows), 2**self.members, dtype=torch.bool)
        for i, row in enumerate(rows):
            x = batch.x[row, None]
            if spam[row]:
                attacks = sets[possible(x, sets, self.direction)[0]]
                x = flip_words(x.expand(len(attacks), -1), attacks)
            errors = top_class(classifier.members(x))[..., 0] != batch.y[row, 0]
            attainable[i, (2 ** torch.arange(self.members)) @ errors.long().cpu()] = True
        return attainable

    def posterior(self, state: FitState) -> RandomisedClassifier:
        assert state.fitted is not None
        return RandomisedClassifier(state.estimator, state.fitted)
