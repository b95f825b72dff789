"""Check that a sampler leaves the target distribution invariant.

Many chains start at independent draws from a density; a correct sampler leaves their distribution
unchanged at every step.  The chains advance until they are nearly independent of their starts, so
that an incorrect sampler has time to deviate.  Then moments and a distribution function of the
whitened draws z are compared with the values for N(0, I).

Source: Geweke (2004), section 3; Gandy and Scott (2021), section 2.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from components.contracts.plugins.protocols import missing
from components.contracts.posteriors import HoldsDraws
from components.contracts.roles import Inference
from components.errors import NumericalError
from components.metrics.reference_moments import standard_error
from runner.conformance.exact_targets import SKEW, ExactTarget
from runner.conformance.outcomes import NonConformanceError, NotCheckedError
from runner.execution.rng import Streams

AnyInference = Inference[Any, Any, Any, Any]
CHAINS = 2000  # number of independent chains
FIRST_STEPS = 200
MOST_STEPS = 3200
PARTICLE_STEPS = 400  # steps of particle methods, which stay correlated with their starts
FORGOTTEN = 0.3  # largest correlation of first and last draws
# in standard errors; by Bonferroni and the t distribution of 100 replicates, the probability of a
# false alarm among 17 samplers with 9 functions of two targets is at most 1e-4
LARGEST_Z = 5.5
FASTER = 16.0  # factor of the step size if chains stay correlated with their starts
SLOWER = 0.25  # factor if a bias or a divergence may be due to the step size
TRIALS = 5
SAME = 0.6  # ratio of deviations above which a smaller step has not reduced a bias
# values of a method's keys; with many rejected proposals a wrong acceptance rule is detected
KEYS = {
    "warmup": 100,
    "burn_in": 100,
    "thinning": 10,
    "superchains": None,
    "target_acceptance": 0.5,
}
# compared functions of z ~ N(0, I), with their expectations and variances
NAMES = ("z1", "z2", "z1²", "z2²", "z1 z2", "Φ(z1)", "Φ(z2)", "Φ(z1)²", "Φ(z2)²")
MEANS = (0, 0, 1, 1, 0, 1 / 2, 1 / 2, 1 / 3, 1 / 3)
VARIANCES = (1, 1, 2, 2, 1, 1 / 12, 1 / 12, 4 / 45, 4 / 45)


def check_stationarity(method: AnyInference, where: str) -> str:
    """Test a sampler on a correlated Gaussian and on a skewed density.

    Raises:
        NonConformanceError: the draws have a different distribution.
        NotCheckedError: the method does not sample densities, or is too slow.
    """
    if "density" not in method.requires.kinds or not (method.mixes or method.draw_bias):
        raise NotCheckedError("does not sample densities")
    if "chains" not in vars(method):
        raise NotCheckedError("lacks the key chains, the number of parallel chains")
    return "; ".join(_check_target(method, title, where) for title in SKEW)


def _check_target(method: AnyInference, title: str, where: str) -> str:
    """Test on one density, with other step sizes if the configured one is inconclusive.

    Chains that stay correlated with their starts take larger steps.  A declared bias, or a
    divergence, must vanish with smaller ones.  Between a step size that is too small and one that
    is too large, the geometric mean is next.
    """
    lower = 0.0
    factor = 1.0
    upper = math.inf
    failure = ""
    last = math.inf  # deviation at the previous step size
    for _ in range(TRIALS):
        trial = KernelTrial(method, title, factor)
        try:
            forgotten = trial.advance()
            detail, excess, deviation = trial.find_deviation()
        except NumericalError as error:
            failure = f"diverges when started at exact draws from {title}{trial.size}: {error}"
            upper = factor
        else:
            if excess <= 0:
                if forgotten:
                    return f"{title}: {detail}"
                lower = factor
            else:
                failure = f"does not keep the distribution of exact draws from {title}: {detail}"
                # a discretisation bias falls with the step size
                if method.draw_bias is None or trial.most or deviation > SAME * last:
                    lower = 0.0
                    break
                upper = factor
                last = deviation
        if "step_size" not in vars(method):
            break
        if lower and upper < math.inf:
            factor = math.sqrt(lower * upper)
        else:
            factor *= FASTER if lower else SLOWER
    if lower:
        raise NotCheckedError(
            f"{title}: chains stay correlated with their starts; raise the step size"
        )
    raise NonConformanceError(f"{failure} ({where})")


class KernelTrial:
    """A method on one density, with many chains that start at exact draws."""

    def __init__(self, method: AnyInference, title: str, factor: float) -> None:
        values = vars(method)
        bias = method.draw_bias
        update = {"chains": CHAINS, **KEYS, **(bias.settings if bias else {})}
        replicates = 1
        if "density" in method.folds_replicates:
            replicates = -(-CHAINS // values["chains"])
            del update["chains"]
        self.size = ""
        if factor != 1:
            update["step_size"] = factor * values["step_size"]
            self.size = f" at step_size={update['step_size']:g}"
        update = {key: value for key, value in update.items() if key in values}
        self.method = method.model_copy(update=update)
        self.most = bias.most if bias else 0.0  # allowed error of particles, in standard deviations
        self.steps = 0
        self.target = ExactTarget(title, replicates)
        if lacks := missing(self.target, method.required_capabilities("density")):
            raise NotCheckedError(f"requires a model with {', '.join(lacks)}")
        self.rng = Streams(0)
        self.state = self.method.init(self.target, self.target.problem, self.rng)

    def advance(self) -> bool:
        """Take steps until chains are nearly independent of their starts; False if they stay
        correlated."""
        stop = PARTICLE_STEPS if self.most else FIRST_STEPS
        while self.steps < MOST_STEPS:
            for _ in range(self.steps, stop):
                self.state, _ = self.method.step(self.state, None, self.rng)
            self.steps = stop
            if self.most or self._is_forgotten():
                return True
            stop = 2 * stop
        return False

    def _draws(self) -> HoldsDraws:
        posterior = self.method.posterior(self.state)
        if not isinstance(posterior, HoldsDraws) or posterior.values.shape[2:] != (2,):
            raise NotCheckedError("the posterior has no draws of the parameters")
        return posterior

    def _is_forgotten(self) -> bool:
        draws = self._draws()
        if draws.log_weights is not None or draws.n_draws < 2:
            return draws.log_weights is not None
        ends = self.target.whiten(draws.values[:, [0, -1]])  # [C, 2, 2]
        ends = (ends - ends.mean(0)) / ends.std(0)
        return float(ends.prod(1).mean(0).abs().max()) < FORGOTTEN

    def find_deviation(self) -> tuple[str, float, float]:
        """Function with the largest deviation of the mean, its excess, and the deviation in
        standard deviations.

        An observation is the mean over the last half of the draws of a replicate, or of a chain of
        a single replicate.  Particles have no standard errors: their excess is in standard
        deviations.
        """
        draws = self._draws()
        if not draws.n_draws:
            raise NotCheckedError(f"keeps no draw within {self.steps} steps")
        f = _features(self.target.whiten(draws.values))  # [C, N, K]
        if draws.log_weights is None:
            f = f[:, draws.n_draws // 2 :].mean(1)
            if draws.replicates > 1:
                f = f.reshape(draws.replicates, -1, len(NAMES)).mean(1)
            mean = f.mean(0)
            error = f.std(0) / len(f) ** 0.5
        else:
            mean = draws.expectation(f.flatten(0, 1))
            error = standard_error(draws, f)
        away = (mean - mean.new_tensor(MEANS)).abs()
        share = away / mean.new_tensor(VARIANCES).sqrt()
        sizes = share if self.most else (away / error).nan_to_num(0.0)
        limit = self.most or LARGEST_Z
        j = int(sizes.argmax())
        size = f"error {sizes[j]:.2g} sd" if self.most else f"|z| {sizes[j]:.3g}"
        place = f"after {self.steps} steps{self.size}"
        detail = f"{size} of the mean of {NAMES[j]}, {limit:g} allowed, {place}"
        return detail, float(sizes[j]) - limit, float(share.max())


def _features(z: Tensor) -> Tensor:
    """Compared functions [..., K] of whitened draws z [..., 2]."""
    u = torch.special.ndtr(z)
    return torch.cat([z, z.square(), z[..., :1] * z[..., 1:], u, u.square()], -1)
