"""A Gaussian over the weights of a network that minimises a PAC-Bayes bound on its risk."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from pydantic import NonNegativeInt, PositiveFloat, PositiveInt, model_validator
from torch import Tensor

from components.contracts.capabilities import WeightSpace
from components.contracts.checks import NamedScores
from components.contracts.posteriors import Analyses
from components.contracts.predictive import Categorical, top_class
from components.contracts.problems import Batch
from components.contracts.requirements import Requirements
from components.contracts.roles import BetweenZeroAndOne, Inference, Info, ZeroToBelowOne
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng, seed_from
from components.errors import ConfigMismatchError
from components.inference.gaussian_weights.mean_field import MeanField, MeanFieldPosterior
from components.inference.point.descent import frozen
from components.maths.divergences.pac_bound import gibbs_risk_bound
from components.maths.optimizers import Adam
from components.problems.supervised import Supervised
from components.registry import register

NETWORKS_AT_ONCE = 50  # number of networks evaluated together
FEWEST_ROWS = 8  # smallest n for which the bound of Maurer (2004) is proved
Share = BetweenZeroAndOne


@dataclass(frozen=True)
class PacState:
    """q(θ), the centre of its prior, and the optimizer of the current phase."""

    q: MeanField
    centre: Tensor  # c [P]
    optimizer: Adam
    seed: int  # seed of the networks in the bound
    prior_rows: Batch | None = not_checkpointed()  # None if c is the random start
    certified: Batch = not_checkpointed()  # rows for the bound, independent of c
    test: Batch = not_checkpointed()
    t: int = 0


def divergence(q: MeanField, centre: Tensor, prior_std: float) -> Tensor:
    """KL(q ‖ N(c, s² I)) []."""
    log_ratio = q.log_std - math.log(prior_std)
    square = (2 * log_ratio).exp() + ((q.network.theta - centre) / prior_std).square()
    return (0.5 * (square - 1) - log_ratio).sum()


@torch.no_grad()
def gibbs_risk(q: MeanField, rows: Batch, draws: int, seed: int) -> float:
    """Mean 0–1 loss on all rows of the given number of networks drawn from q, reproducible by
    seed."""
    generator = torch.Generator(q.log_std.device).manual_seed(seed)
    wrong = 0
    for first in range(0, draws, NETWORKS_AT_ONCE):
        theta = q.draw(min(NETWORKS_AT_ONCE, draws - first), generator)
        predictive = q.network.output_predictive(q.network.outputs(theta, rows.x))
        assert isinstance(predictive, Categorical)  # guaranteed by ``requires``
        wrong += int((top_class(predictive.logits) != rows.y).sum())
    return wrong / (draws * len(rows.y))


@dataclass(frozen=True)
class PacPosterior(MeanFieldPosterior, Analyses):
    """q(θ), the bound on its risk, and the risk on held-out rows."""

    values: dict[str, float]

    def scores(self) -> NamedScores:
        """pac_bound, gibbs_risk (held out), gibbs_risk_train (on the rows of the bound), pac_kl."""
        return dict(self.values)


@register("inference", "pac_bayes")
class PacBayes(Inference[WeightSpace, Supervised, Batch, PacState]):
    """PAC-Bayes: factorised Gaussian network weights that minimise a bound on their risk (Adam).

        J(q) = E_q[−log₂ p(y | x, θ)] + √((KL(q ‖ p) + log(2√n/δ)) / 2n),   p = N(c, s² I)
        R(q) ≤ kl⁻¹(kl⁻¹(R̂_m, log(2/δ')/m), (KL(q ‖ p) + log(2√n/δ)) / n)

    The second line, ``pac_bound``, holds with probability 1 − δ − δ' over the rows: R is the risk
    of a network redrawn for each label, R̂_m the error of m drawn networks on n rows.  The centre c
    is the random start, or the result of ``prior_steps`` steps on a random ``prior_share`` of the
    training rows; then n counts the other rows, which are independent of c.  The surrogate −log₂ p
    is at least the 0–1 loss.  J is minimised with ``n_samples`` reparameterised draws and all n
    rows at each step.  Info: objective J, kl in nats, risk (surrogate).

    Raises:
        ConfigError: a share of rows for the prior without steps on them, or the reverse.
        ConfigMismatchError: fewer than 8 rows are left for the bound, or a label is missing.

    Source: McAllester (1999); Maurer (2004), Theorem 5; Dziugaite & Roy (2017), sections 3 and 4;
    Pérez-Ortiz et al. (2021), section 5, on priors learned on part of the data; Bardenet (2021),
    section 3.4.3.
    """

    requires = Requirements(
        kinds={"supervised"},
        targets={"binary", "classes"},
        refused_traits={"several_tasks": "bounds the risk of one label per row"},
        batch_kind="whole",
        capabilities={WeightSpace},
    )
    reads_truth = True  # the bound is compared with the error on test rows

    prior_share: ZeroToBelowOne
    prior_steps: NonNegativeInt
    prior_std: PositiveFloat
    lr: PositiveFloat
    n_samples: PositiveInt
    delta: Share
    delta_draws: Share
    draws: PositiveInt
    n_predict: PositiveInt

    @model_validator(mode="after")
    def _check_prior(self) -> PacBayes:
        if (self.prior_share > 0) != (self.prior_steps > 0):
            raise ValueError(
                f"prior_steps: {self.prior_steps} steps on a share of {self.prior_share:g} of the rows; "
                "set both above 0, or both to 0 for a prior around the random start"
            )
        return self

    def init(self, model: WeightSpace, problem: Supervised, rng: Rng) -> PacState:
        train = problem.train
        n = len(train.x)
        m = round(self.prior_share * n)
        if n - m < FEWEST_ROWS:
            raise ConfigMismatchError(
                f"inference.prior_share={self.prior_share:g}: leaves {n - m} of {n} training rows "
                f"for the bound, which requires {FEWEST_ROWS}; lower it, or use more rows"
            )
        if not bool(train.mask.all() and problem.test.mask.all()):
            raise ConfigMismatchError(
                f"inference={self.name}: requires a label for every row, but {problem.name} has "
                f"missing labels; remove these rows"
            )
        order = torch.randperm(n, generator=rng.init, device=rng.init.device).to(train.x.device)
        q = MeanField(model, self.prior_std)
        return PacState(
            q=q,
            centre=q.network.theta.detach().clone(),
            optimizer=Adam(q.parameters(), self.lr),
            seed=seed_from(rng.init),
            prior_rows=train.part(order[:m], 1.0) if m else None,
            certified=train.part(order[m:], 1.0),
            test=problem.test,
        )

    def surrogate(self, q: MeanField, theta: Tensor, rows: Batch) -> Tensor:
        """Mean of −log₂ p(y | x, θ) over networks θ [S, P] and rows []."""
        f = q.network.outputs(theta, rows.x)
        return -q.network.log_prob(f, rows).sum() / (len(theta) * rows.n_rows * math.log(2))

    def objective(
        self, q: MeanField, centre: Tensor, rows: Batch, generator: torch.Generator
    ) -> dict[str, Tensor]:
        """J and its terms, each []."""
        n = rows.n_rows
        kl = divergence(q, centre, self.prior_std)
        risk = self.surrogate(q, q.draw(self.n_samples, generator), rows)
        penalty = ((kl + math.log(2 * math.sqrt(n) / self.delta)) / (2 * n)).sqrt()
        return {"objective": risk + penalty, "kl": kl, "risk": risk}

    def step(self, state: PacState, batch: Batch, rng: Rng) -> tuple[PacState, Info]:
        q = state.q
        if state.t < self.prior_steps:
            assert state.prior_rows is not None  # guaranteed by the keys
            risk = self.surrogate(q, q.network.theta[None], state.prior_rows)
            terms = {"objective": risk, "kl": torch.zeros_like(risk), "risk": risk}
        else:
            terms = self.objective(q, state.centre, state.certified, rng.noise)
        state.optimizer.descend(terms["objective"])
        state = replace(state, t=state.t + 1)
        if state.t == self.prior_steps:
            centre = q.network.theta.detach().clone()
            state = replace(state, centre=centre, optimizer=Adam(q.parameters(), self.lr))
        return state, {name: value.detach() for name, value in terms.items()}

    def bound(self, state: PacState) -> dict[str, float]:
        """Scores of q: the bound, its terms and the held-out risk.  While the centre is learned, it
        equals the centre of q, so that KL = 0."""
        q = state.q
        centre = q.network.theta.detach() if state.t < self.prior_steps else state.centre
        with torch.no_grad():
            kl = float(divergence(q, centre, self.prior_std))
        risk = gibbs_risk(q, state.certified, self.draws, state.seed)
        n = state.certified.n_rows
        return {
            "pac_bound": gibbs_risk_bound(risk, kl, n, self.draws, self.delta, self.delta_draws),
            "gibbs_risk": gibbs_risk(q, state.test, self.draws, state.seed),
            "gibbs_risk_train": risk,
            "pac_kl": kl,
        }

    def posterior(self, state: PacState) -> PacPosterior:
        return PacPosterior(q=frozen(state.q), n_predict=self.n_predict, values=self.bound(state))
