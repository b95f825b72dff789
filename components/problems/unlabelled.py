"""Unlabelled problems: rows x without labels, all of the same shape."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from components.contracts.attackers import Attacker
from components.contracts.capabilities import Elbo, LatentVariable
from components.contracts.checks import NamedScores, check_shape
from components.contracts.posteriors import (
    Analyses,
    BoundsLikelihood,
    HoldsDraws,
    PredictsRows,
    module_of,
)
from components.contracts.predictive import GaussianMixture
from components.contracts.problems import Kind, Rows, Values
from components.contracts.progress import report_each
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.metrics.evidence.held_out import LatentEvidence
from components.metrics.unlabelled import likelihood_bounds, neighbours
from components.metrics.unlabelled.imputation import FilledGaps
from components.problems.epochs import RowProblem, describe_batches
from components.problems.input_columns import InputColumns

if TYPE_CHECKING:
    import pandas as pd

BOUND_SAMPLES = 100  # draws of the guide for −ELBO if the likelihood has a separate proposal


def sample_binary(probabilities: Rows, generator: torch.Generator) -> Rows:
    """Binary rows: each value is 1 with the probability at the same position."""
    return replace(probabilities, x=torch.bernoulli(probabilities.x, generator=generator))


@dataclass
class Unlabelled(RowProblem[Rows]):
    """Training rows, and held-out rows for scores.

    If ``redrawn``, training rows hold probabilities, from which every step draws new binary values
    as a pure function of (seed, step).  The dataset draws the held-out rows once."""

    kind: ClassVar[Kind] = "unlabelled"
    name: str
    values: Values
    train: Rows
    test: Rows
    batch_size: int | None  # None means the whole training set in order at every step
    redrawn: bool = False
    image_shape: tuple[int, ...] | None = None
    # [B] of the held-out rows: colours in figures, and reference for clusters
    test_classes: Tensor | None = None
    # each (problem, posterior, rng) -> {name: Figure}
    figures: list[Callable[..., dict]] = field(default_factory=list)
    importance_samples: int = 100  # S, samples for the bound on a held-out row's likelihood
    evaluation_chunk: int = 100  # number of held-out rows scored together, S samples each
    # additional estimator of their likelihood; None means only the guide
    evidence: LatentEvidence | None = None
    replicates: int = 1
    attacker: Attacker | None = None  # always None, because there are no labels to attack
    # source columns of the rows; None means columns x1 … xD in the units of x
    columns: InputColumns | None = None
    # training rows followed by held-out rows, before removal of values (values: incomplete) [N + B,
    # …]
    complete: Tensor | None = None

    def __post_init__(self) -> None:
        """Raise ConfigMismatchError if binary values, or their probabilities, are outside [0,
        1]."""
        for rows in (self.train, self.test):
            if self.values != "binary" or not rows.x.numel():
                continue
            low, high = (float(v) for v in rows.x.aminmax())
            if not (low >= 0 and high <= 1):  # also True for NaN
                raise ConfigMismatchError(
                    f"dataset: binary values must be in [0, 1], but values of {self.name} range "
                    f"from {low:g} to {high:g}; scale them, or use a dataset with real values"
                )

    def without_truth(self) -> Unlabelled:
        """The rows as passed to a method, with training rows in place of test rows."""
        return replace(self, test=self.train, test_classes=None)

    @property
    def device(self) -> torch.device:
        return self.train.x.device

    def show(self, batch: Rows, rows: Tensor | None, step: int, rng: Rng) -> Rows:
        return sample_binary(batch, rng.at("noise", step)) if self.redrawn else batch

    def held_out_fields(
        self, rows: tuple[Tensor, Tensor], held_out: Rows, generator: torch.Generator
    ) -> dict[str, Any]:
        fields: dict[str, Any] = {"test_classes": None}
        if self.redrawn:
            drawn = sample_binary(Rows(held_out.x.cpu(), 1.0), generator).x
            fields["test"] = Rows(drawn.to(self.device), 1.0)
        if self.complete is not None:
            fields["complete"] = self.complete[torch.cat(rows).to(self.device)]
        return fields

    def _parts(self) -> list[Rows]:
        """The held-out rows, in chunks."""
        starts = range(0, self.test.n_rows, self.evaluation_chunk)
        return [
            self.test.part(slice(start, start + self.evaluation_chunk), 1.0) for start in starts
        ]

    def log_weights(
        self, posterior: BoundsLikelihood[Rows], rng: Rng, n_samples: int | None = None
    ) -> Tensor:
        """The posterior's log weights at the held-out rows [S, B], in chunks with separate
        evaluation noise."""
        n_samples = n_samples or self.importance_samples
        with torch.no_grad():
            weights = torch.cat(
                [
                    posterior.row_log_weights(p, n_samples, rng.at("evaluation", i))
                    for i, p in report_each(
                        list(enumerate(self._parts())), lambda _: "bounds of the held-out rows"
                    )
                ],
                1,
            )
        check_shape("the log weights of held-out rows", weights, None, self.test.n_rows)
        return weights

    def score(
        self, posterior: BoundsLikelihood[Rows] | PredictsRows[Rows], rng: Rng
    ) -> NamedScores:
        """−ELBO and the bound of S importance weights on −log p(x), in nats per held-out row.

        For a posterior with known p(x) both bounds are equal.  Values removed from incomplete rows
        have the scores of ``FilledGaps``.  ``evidence`` may use importance weights of a proposal
        that is independent of training, and annealed importance sampling; real rows with known
        classes have the error of nearest neighbours among latent means.  If parameters are
        integrated out, the scores are ``nlpp``, −log p(x | training rows), and the moments of the
        parameters."""
        if isinstance(posterior, PredictsRows):
            return self._of_parameters(posterior)
        evidence = self.evidence if self.evidence is not None and self.evidence.asks else None
        fitted = evidence is not None and evidence.proposal != "guide"
        log_weights = self.log_weights(
            posterior, rng, min(self.importance_samples, BOUND_SAMPLES) if fitted else None
        )
        out: NamedScores = dict(likelihood_bounds.scores(log_weights))
        if evidence is not None:
            out |= evidence.scores(posterior, self._parts(), rng)
        module = module_of(posterior)
        if (
            self.test_classes is not None
            and self.values in ("real", "incomplete")
            and isinstance(module, LatentVariable)
        ):
            with torch.no_grad():
                means = torch.cat([module.encode(part)[0] for part in self._parts()])
            out["neighbour_error"] = neighbours.leave_one_out_error(means, self.test_classes)
        filled = self._impute(posterior, rng)
        out |= {} if filled is None else filled.scores()
        if isinstance(posterior, Analyses):
            out |= posterior.scores()
        return out

    def _impute(self, posterior: object, rng: Rng) -> FilledGaps | None:
        """Missing values of all rows, training rows first, imputed by the model."""
        module = module_of(posterior)
        if self.values != "incomplete" or not isinstance(module, Elbo):
            return None
        x = torch.cat([self.train.x, self.test.x])
        with torch.no_grad():
            law = module.sample_predictive(x, 1, rng.noise)
        assert isinstance(law, GaussianMixture)
        gaps = x.flatten(1).isnan()
        removed = None if self.complete is None else self.complete.flatten(1)[gaps].unsqueeze(1)
        entries = GaussianMixture(law.mu[:, gaps].unsqueeze(2), law.v[:, gaps].unsqueeze(2))
        return FilledGaps(gaps.nonzero(), entries, removed)

    def tables(self, posterior: object, rng: Rng) -> dict[str, pd.DataFrame]:
        filled = self._impute(posterior, rng)
        return {} if filled is None else {"imputed": filled.table()}

    def _of_parameters(self, posterior: PredictsRows[Rows]) -> NamedScores:
        """nlpp in nats per held-out row; the adjusted Rand index of clusters relative to known
        classes; moments and convergence."""
        from components.metrics import diagnostics
        from components.metrics.unlabelled import clusters, parameter_moments

        with torch.no_grad():
            parts = self._parts()
            log_density = torch.cat(
                [
                    posterior.log_predictive(part)
                    for part in report_each(parts, lambda _: "densities of the held-out rows")
                ]
            )
            clusterings = [posterior.clusters(part) for part in parts]
        check_shape("the log densities of held-out rows", log_density, self.test.n_rows)
        out: NamedScores = {"nlpp": -float(log_density.mean())}
        assignments = [p for p in clusterings if p is not None]
        if assignments:
            out |= clusters.scores(torch.cat(assignments), self.test_classes)
        if isinstance(posterior, HoldsDraws):
            out |= diagnostics.convergence(posterior)[0] | parameter_moments.scores(posterior)
        if isinstance(posterior, Analyses):
            out |= posterior.scores()
        return out

    def describe(self) -> dict[str, str]:
        """Facts for the terminal and the record."""
        anew = ", redrawn at each step" * self.redrawn
        return {
            "data": self.name,
            "training rows": f"{self.n:,}",
            "held-out rows": f"{self.test.n_rows:,}",
            "a row": f"{self.train.x[0].numel()} {self.values} values{anew}",
            "batches": describe_batches(self.n, self.batch_size),
        }
