"""Certificates: test rows that no attack of a given size can break.

An adaptive attack gives an upper bound on the accuracy under the worst perturbation, a certificate
a lower bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from components.attackers.words.changes import CHUNK, change_sets, flip_words, malicious, possible
from components.contracts.capabilities.margins import (
    BoundsMargins,
    MarginBounds,
    Perturbations,
)
from components.contracts.posteriors import Predicts
from components.contracts.predictive import Categorical
from components.contracts.streams import Rng
from components.contracts.victim import Direction, Measure
from components.maths.divergences.binomial_bound import upper_bound
from components.maths.spacing import row_numbers
from components.posteriors.draws import Draws
from components.posteriors.fitted import FittedEstimator
from components.posteriors.networks import Networks
from components.posteriors.noisy_votes import SmoothedNetwork
from components.posteriors.particles import Particles
from components.posteriors.point_estimate import PointEstimate
from components.problems.supervised import Supervised

EXACT = 2  # maximum changed words for which cases left open by the bounds are enumerated
SETS = 20_000  # maximum number of sets of changed words per email
ROWS = 128  # number of rows bounded together
DRAWS = 4096  # rows times draws bounded together
EFFECTS = 1 << 20  # rows times draws times inputs
RADII = 10**6  # first evaluation stream for the radii of smoothed classifiers


@dataclass(frozen=True)
class SmoothedLabels:
    """L2 radii of a smoothed classifier, drawn once for all sizes, with its settings."""

    radius: Tensor  # [B, T]; 0: abstains, or certifies a class other than y
    abstained: float  # share of labels without a radius
    votes: int  # S, votes of a prediction
    level: float  # α

    def outvoted(self, y: Tensor, predictive: Categorical) -> Tensor:
        """True for labels y with a probability below ½ according to the votes [B, T] bool.

        The Clopper–Pearson bound has level α divided by the number of labels.
        """
        share = predictive.log_prob(y.clamp_min(0)).exp() * (self.votes + 1)
        k = share.ceil().clamp_max(self.votes).cpu().numpy()
        bound = upper_bound(k, self.votes, self.level / max(1, y.numel()))
        return torch.as_tensor(bound < 0.5).to(y.device)


@dataclass(frozen=True)
class Certificate:
    """Labels that no perturbation of a size changes, and the method of proof."""

    rows: Tensor  # [B, T] bool
    method: str  # "interval bounds", "enumeration" (exact), or "votes under noise"
    smoothed: SmoothedLabels | None = None

    def count_contradictions(self, y: Tensor, *predictions: Categorical) -> int:
        """Number of certified labels contradicted by any prediction at perturbed inputs.

        For votes under noise, only labels are counted for which the votes show that y has a
        probability below ½, because a prediction from few draws may err where g does not.
        """
        broken = torch.zeros_like(self.rows)
        for predictive in predictions:
            if self.smoothed is None:
                broken |= predictive.guess != y
            else:
                broken |= self.smoothed.outvoted(y, predictive)
        return int((self.rows & broken)[y >= 0].sum())


Classifiers = list[tuple[BoundsMargins, object]]  # with θ [K, P], a fit, or None


def certify(
    problem: Supervised,
    posterior: Predicts,
    y: Tensor,
    measure: Measure,
    eps: float,
    rng: Rng,
    among: Certificate | None = None,
) -> Certificate | None:
    """Labels of the test set that stay correctly predicted under every perturbation of size ε.

    Interval bounds of the margins of every draw (``maths.intervals``) are sound for the victim in
    floating point, and for inputs that leave the ball by no more than the rounding allowed in the
    checks of an attack.  For words, emails left open by the bounds are decided by enumerating all
    sets of at most ``EXACT`` changed words, if there are at most ``SETS``.

    A smoothed classifier has radii in L2 instead, each valid with probability 1 − α: a label is
    certified if its radius exceeds the L2 norm of every perturbation.

    Args:
        problem: the problem with the test rows.
        posterior: the evaluated classifier.
        y: class numbers [B, T], negative where missing.
        measure: norm of the perturbation, or kind of change of words.
        eps: ε, in that measure.
        rng: random streams; the enumeration predicts with the streams of the evaluation.
        among: the certificate of a smaller size; only its labels can be certified.

    Returns:
        The certificate; None if the posterior has no bounds.
    """
    inputs = perturbations(problem, y, measure, eps)
    if isinstance(posterior, SmoothedNetwork):
        earlier = None if among is None else among.smoothed
        smoothed = earlier or _smoothed_labels(problem, posterior, y, rng)
        certified = smoothed.radius > inputs.l2_norms.unsqueeze(-1)
        return Certificate(certified, "votes under noise", smoothed)
    classifiers = _classifiers(posterior)
    if not classifiers:
        return None
    right = torch.zeros_like(y, dtype=torch.bool)
    rows = row_numbers(y)
    rows = rows if among is None else rows[among.rows.any(1)]
    draws = sum(len(theta) if isinstance(theta, Tensor) else 1 for _, theta in classifiers)
    size = min(ROWS, DRAWS // draws, EFFECTS // (draws * problem.n_inputs))
    for part in rows.split(max(1, size)):
        right[part] = mixture_bounds(classifiers, y[part], inputs.rows(part)).certified()
    is_norm = measure == "linf" or measure == "l2" or measure == "l1"
    if is_norm or eps > EXACT or math.comb(problem.n_inputs, int(eps)) > SETS:
        return Certificate(right, "interval bounds")
    direction: Direction = "insertion" if measure == "insertion" else "flip"
    for b in rows[~right[rows, 0]].tolist():
        right[b] = _enumerate(problem, posterior, y, b, direction, int(eps), rng)
    return Certificate(right, "enumeration")


def _smoothed_labels(
    problem: Supervised, posterior: SmoothedNetwork, y: Tensor, rng: Rng
) -> SmoothedLabels:
    """Radii of the test labels [B, T]; 0 where a class other than y is certified."""
    chunks = problem.test.x.split(problem.evaluation_chunk)
    parts = [posterior.certify(x, rng.at("evaluation", RADII + i)) for i, x in enumerate(chunks)]
    guess, radius = (torch.cat(each) for each in zip(*parts, strict=True))
    abstained = float((radius == 0)[y >= 0].double().mean())
    radius = torch.where(guess == y, radius, 0.0)
    return SmoothedLabels(radius, abstained, posterior.votes, posterior.level)


def _classifiers(posterior: Predicts) -> Classifiers:
    """The classifiers of a posterior, which have bounds, and their parameters; empty if they have
    no bounds, or if the posterior predicts by fresh or weighted draws."""
    pairs: list[tuple[object, object]] = []
    match posterior:
        case PointEstimate():
            pairs = [(posterior.network, None)]
        case Networks():
            pairs = [(network, None) for network in posterior.networks]
        case Particles():
            pairs = [(posterior.model, posterior.theta.detach())]
        case Draws() if posterior.n_draws and posterior.log_weights is None:
            pairs = [(posterior.model, posterior.flat)]
        case FittedEstimator():
            pairs = [(posterior.estimator, posterior.fitted)]
    bounded = [(model, theta) for model, theta in pairs if isinstance(model, BoundsMargins)]
    return bounded if len(bounded) == len(pairs) else []


def mixture_bounds(classifiers: Classifiers, y: Tensor, inputs: Perturbations) -> MarginBounds:
    """Bounds of the margins of all classifiers of a mixture, concatenated."""
    parts = [model.margin_bounds(theta, y, inputs) for model, theta in classifiers]
    lower, low, high = (torch.cat(ends) for ends in zip(*(p[:3] for p in parts), strict=True))
    return MarginBounds(lower, low, high, parts[0].unit)


def perturbations(problem: Supervised, y: Tensor, measure: Measure, eps: float) -> Perturbations:
    """Inputs that an attack of size ε may reach from the test rows; for words only malicious emails
    change."""
    x = problem.test.x
    if measure == "insertion" or measure == "flip":
        change = torch.where(x < 0.5, 1.0, 0.0 if measure == "insertion" else -1.0)
        change = torch.where(malicious(y)[:, None], change, 0.0).double()
        return Perturbations(x.double(), change.clamp_max(0), change.clamp_min(0), words=int(eps))
    coordinates = {"linf": 1.0, "l2": 1 + math.sqrt(x.shape[1]), "l1": 1.0 + x.shape[1]}[measure]
    rounding = 8 * torch.finfo(x.dtype).eps * (1 + float(x.abs().max())) * coordinates
    reach = eps + rounding
    x = x.double()
    low = torch.full_like(x, -reach)
    high = torch.full_like(x, reach)
    if problem.bounds is not None:
        low = torch.maximum(low, problem.bounds[0] - x).clamp_max(0)
        high = torch.minimum(high, problem.bounds[1] - x).clamp_min(0)
    norm = None if measure == "linf" else measure
    return Perturbations(x, low, high, norm, reach)


def _enumerate(
    problem: Supervised,
    posterior: Predicts,
    y: Tensor,
    row: int,
    direction: Direction,
    most: int,
    rng: Rng,
) -> bool:
    """True if an email keeps its class for all sets of at most the given number of changed
    words."""
    x = problem.test.x[row : row + 1]
    if int(y[row, 0]) < 0:
        return False
    sets = change_sets(x.shape[1], most if bool(malicious(y[row : row + 1])) else 0).to(x.device)
    sets = sets[possible(x, sets, direction)[0]]
    for part in sets.split(CHUNK):
        predictive = posterior.predict(
            flip_words(x.expand(len(part), -1), part), rng.at("evaluation", 0)
        )
        assert isinstance(predictive, Categorical)
        if not bool((predictive.guess[:, 0] == y[row, 0]).all()):
            return False
    return True
