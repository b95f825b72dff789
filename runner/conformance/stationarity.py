"""Check that a sampler keeps the law of exact draws.

Many chains start at independent draws of a density; a correct sampler leaves their law as it is,
at every step.  The chains advance until they have forgotten their starts, so that a wrong
sampler has the time to go elsewhere.  Then moments and a distribution function of the whitened
draws z are compared with those of N(0, I).

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

CHAINS = 2000  # independent draws of a test
FIRST_STEPS = 200
MOST_STEPS = 3200
PARTICLE_STEPS = 400  # of particles, which do not forget their starts
FORGOTTEN = 0.3  # largest correlation of first and last draws
# standard errors; by Bonferroni and the t distribution of 100 replicates one of 17 samplers with
# 9 functions of two targets has a false alarm with probability 1e-4 at most
LARGEST_Z = 5.5
FASTER = 16.0  # factor of the step size where chains do not forget their starts
SLOWER = 0.25  # and where a bias or a divergence may be due to it
TRIALS = 5
SAME = 0.6  # ratio of deviations above which a smaller step has not made a bias smaller
# values of keys that a method has; many proposals are rejected, so that a wrong acceptance matters
KEYS = {
    "warmup": 100,
    "burn_in": 100,
    "thinning": 10,
    "superchains": None,
    "target_acceptance": 0.5,
}
# functions of z ~ N(0, I) that are compared, with their expectations and variances
NAMES = ("z1", "z2", "z1²", "z2²", "z1 z2", "Φ(z1)", "Φ(z2)", "Φ(z1)²", "Φ(z2)²")
MEANS = (0, 0, 1, 1, 0, 1 / 2, 1 / 2, 1 / 3, 1 / 3)
VARIANCES = (1, 1, 2, 2, 1, 1 / 12, 1 / 12, 4 / 45, 4 / 45)


def check_stationarity(method: Inference[Any, Any, Any, Any], where: str) -> str:
    """Test a sampler on a correlated Gaussian and on a skewed density.

    Raises:
        NonConformanceError: its draws have another law.
        NotCheckedError: the method is no sampler of densities, or too slow.
    """
    if "density" not in method.requires.kinds or not (method.mixes or method.draw_bias):
        raise NotCheckedError("it samples no densities")
    if "chains" not in vars(method):
        raise NotCheckedError("it has no key chains, the number of parallel chains")
    return "; ".join(_check_target(method, title, where) for title in SKEW)


def _check_target(method: Inference[Any, Any, Any, Any], title: str, where: str) -> str:
    """Test on one density, at another step size where the configured one decides nothing.

    Chains that do not forget their starts take larger steps.  A declared bias has to vanish with
    smaller ones, and so has a divergence.  Between a step that is too small and one that is too
    large their geometric mean is next.
    """
    lower = 0.0
    factor = 1.0
    upper = math.inf
    failure = ""
    last = math.inf  # the deviation at the last step size
    for _ in range(TRIALS):
        trial = KernelTrial(method, title, factor)
        try:
            forgotten = trial.advance()
            detail, excess, deviation = trial.find_deviation()
        except NumericalError as error:
            failure = f"it diverges from exact draws of {title}{trial.size}: {error}"
            upper = factor
        else:
            if excess <= 0:
                if forgotten:
                    return f"{title}: {detail}"
                lower = factor
            else:
                failure = f"exact draws of {title} have another law: {detail}"
                # a bias of the step size falls with it
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
        raise NotCheckedError(f"{title}: chains depend on their starts; raise the step size")
    raise NonConformanceError(f"{failure} ({where})")


class KernelTrial:
    """A method on one density, in many chains that start at exact draws."""

    def __init__(self, method: Inference[Any, Any, Any, Any], title: str, factor: float) -> None:
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
        self.most = bias.most if bias else 0.0  # error of particles, in standard deviations
        self.steps = 0
        self.target = ExactTarget(title, replicates)
        if lacks := missing(self.target, method.required_capabilities("density")):
            raise NotCheckedError(f"it requires {', '.join(lacks)} of a model")
        self.rng = Streams(0)
        self.state = self.method.init(self.target, self.target.problem, self.rng)

    def advance(self) -> bool:
        """Take steps until the chains have forgotten their starts; False if they do not."""
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
            raise NotCheckedError("its posterior holds no draws of the parameters")
        return posterior

    def _is_forgotten(self) -> bool:
        draws = self._draws()
        if draws.log_weights is not None or draws.n_draws < 2:
            return draws.log_weights is not None
        ends = self.target.whiten(draws.values[:, [0, -1]])  # [C, 2, 2]
        ends = (ends - ends.mean(0)) / ends.std(0)
        return float(ends.prod(1).mean(0).abs().max()) < FORGOTTEN

    def find_deviation(self) -> tuple[str, float, float]:
        """The function whose mean deviates most, its excess, and the largest deviation in
        standard deviations.

        The mean of a replicate, or of a chain of a single replicate, over the last half of its
        draws is one observation.  Particles have no standard errors: their excess is in
        standard deviations.
        """
        draws = self._draws()
        if not draws.n_draws:
            raise NotCheckedError(f"it keeps no draw within {self.steps} steps")
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
    """Functions of whitened draws z [..., 2] that are compared with their expectations [..., K]."""
    u = torch.special.ndtr(z)
    return torch.cat([z, z.square(), z[..., :1] * z[..., 1:], u, u.square()], -1)
