"""Supervised problems: x [N, D] and one label per task; labels may be missing."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Literal, Self

import torch
from torch import Tensor

from components.contracts.attackers import Attacker
from components.contracts.checks import NamedScores
from components.contracts.posteriors import Analyses, HoldsDraws, Predicts
from components.contracts.predictive import Categorical, Predictive, components_of, concatenate
from components.contracts.problems import Batch, Domain, Kind, Target
from components.contracts.progress import report_each
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.maths.spacing import spaced_rows
from components.problems.epochs import RowProblem, describe_batches
from components.problems.input_columns import InputColumns

if TYPE_CHECKING:
    from matplotlib.figure import Figure


InputUnits = Literal["standardised", "raw units"]
SIZES_IN: dict[InputUnits, str] = {
    "standardised": "standard deviations of the training rows",
    "raw units": "the units of the columns",
}
MOST_PARAMETERS = 200  # maximum number of parameters with convergence diagnostics
INPUTS_DIAGNOSED = 20  # number of inputs for diagnostics of predictions otherwise
INPUTS_COMPARED = 100  # number of test inputs for comparing chains by their predictions


def _predict_by_chain(
    posterior: HoldsDraws, predictive: Predictive, rows: Tensor | None = None
) -> Tensor:
    """Predictions of each draw at all inputs or at some rows of them [C, N, Q].

    They are means, or log odds relative to the first class.
    """
    f = components_of(predictive)  # [C·N, B, T]
    if isinstance(predictive, Categorical):
        f = f[..., 1:] - f[..., :1]  # [C·N, B, T, classes − 1]
    f = f if rows is None else f[:, rows.to(f.device)]
    return f.flatten(1).unflatten(0, posterior.draws.shape[:2])


# losses of decisions at y, mask [B, T] for tasks with these names
DecisionScores = Callable[[Predictive, Tensor, Tensor, list[str]], dict[str, float]]
# figures of the predictions of a posterior; may be empty
SupervisedFigure = Callable[["Supervised", Predicts, Rng], dict[str, "Figure"]]


@dataclass
class Supervised(RowProblem[Batch]):
    """Data, minibatches and scores of T regression or classification tasks.

    The dataset standardises inputs and real labels; ``y_mean`` and ``y_std`` convert back to the
    units of the labels.  Scores are in standardised units, as in Boustati A.1.2, unless the dataset
    declares otherwise."""

    kind: ClassVar[Kind] = "supervised"
    name: str
    target: Target
    train: Batch
    test: Batch
    batch_size: int | None  # None means the whole training set in order at every step
    n_classes: int = 1  # 1 for real labels, 2 for binary labels
    task_names: list[str] = field(default_factory=list)
    y_mean: Tensor | None = None  # [T]
    y_std: Tensor | None = None  # [T]
    label_unit: str = ""  # units of the labels before standardisation; empty if not known
    # smallest and largest value an input can take (attacks stay inside)
    bounds: tuple[float, float] | None = None
    domain: Domain = "continuous"  # kind of values of an input, which attacks preserve
    # tokens are 0 (padding) … vocabulary − 1
    vocabulary: int | None = None
    image_shape: tuple[int, ...] | None = None
    # unit of the numbers in x; None if documented for the dataset
    input_units: InputUnits | None = None
    figures: list[SupervisedFigure] = field(default_factory=list)
    evaluation_chunk: int = 1000  # test rows predicted together
    # parameters from which the data were simulated, by name
    truth: dict[str, Tensor] = field(default_factory=dict)
    # losses of decisions about test labels; None if not scored
    decision: DecisionScores | None = None
    moments: bool = False  # True if posterior moments of named parameters are scores
    replicates: int = 1
    attacker: Attacker | None = None
    # names of the classes in the data; empty means their numbers
    class_names: list[str] = field(default_factory=list)
    # source columns of the inputs; None means columns x1 … xD in the units of x
    columns: InputColumns | None = None
    _at_test_inputs: tuple[weakref.ref, Rng, Predictive] | None = field(
        default=None, init=False, repr=False
    )

    def __post_init__(self) -> None:
        """Raise ConfigMismatchError if standardised inputs or labels are not finite because the
        originals are too large."""
        for split_name, rows in (("training", self.train), ("test", self.test)):
            for name, values in (("inputs", rows.x), ("labels", rows.y[rows.mask])):
                if values.is_floating_point() and not bool(values.isfinite().all()):
                    raise ConfigMismatchError(
                        f"dataset: {name} of the {split_name} rows of {self.name} are not finite "
                        f"after standardisation; use units in which the numbers and their squares "
                        f"are finite"
                    )
        for scale in (self.y_mean, self.y_std):
            if scale is not None and not bool(scale.isfinite().all()):
                raise ConfigMismatchError(
                    f"dataset: labels of {self.name} are so large that their squares overflow; use "
                    f"larger units for the column"
                )

    @property
    def classes(self) -> list[str]:
        """Names of the classes, in order."""
        return self.class_names or [str(number) for number in range(self.n_classes)]

    @property
    def n_tasks(self) -> int:
        return self.train.y.shape[1]

    @property
    def n_inputs(self) -> int:
        return self.train.x.shape[1]

    def without_truth(self) -> Self:
        """The rows as passed to a method, without test labels and true parameters."""
        y = torch.zeros_like(self.test.y)
        test = replace(self.test, y=y, mask=torch.zeros_like(self.test.mask))
        return replace(self, test=test, truth={})

    @property
    def device(self) -> torch.device:
        return self.train.x.device

    def show(self, batch: Batch, rows: Tensor | None, step: int, rng: Rng) -> Batch:
        return batch if rows is None else replace(batch, numbers=rows)

    def predictive_at(self, posterior: Predicts, x: Tensor, rng: Rng) -> Predictive:
        """Posterior predictive at x [B, D], in chunks; each chunk has its own evaluation noise.

        Predictions at the test inputs are cached until the next ``score``, for figures and the
        clean end of a security curve."""
        cache = self._at_test_inputs
        tested = x is self.test.x and not torch.is_grad_enabled()
        if tested and cache is not None and cache[0]() is posterior and cache[1] is rng:
            return cache[2]
        chunks = list(enumerate(x.split(self.evaluation_chunk)))
        parts = [
            posterior.predict(chunk, rng.at("evaluation", i))
            for i, chunk in report_each(chunks, lambda _: f"predictions of {len(x):,} rows")
        ]
        predictive = concatenate(parts)
        if tested:
            self._at_test_inputs = weakref.ref(posterior), rng, predictive
        return predictive

    def score(self, posterior: Predicts, rng: Rng) -> NamedScores:
        from components.metrics import classification, regression
        from components.metrics.unlabelled import parameter_moments

        self._at_test_inputs = None  # the posterior may have changed in between
        with torch.no_grad():
            predictive = self.predictive_at(posterior, self.test.x, rng)
        targets = self.test.y, self.test.mask, self.task_names
        if isinstance(predictive, Categorical):
            out: NamedScores = dict(classification.scores(predictive, *targets))
        else:
            out = dict(regression.scores(predictive, *targets))
        if self.decision is not None:
            out |= self.decision(predictive, *targets)
        if isinstance(posterior, HoldsDraws):
            out |= self._convergence(posterior) | self._agreement(posterior, predictive)
            out |= parameter_moments.scores(posterior) if self.moments else {}
            out |= parameter_moments.against_truth(posterior, self.truth)
        if isinstance(posterior, Analyses):
            out |= posterior.scores()
        return out

    def _convergence(self, posterior: HoldsDraws) -> dict[str, float]:
        """``diagnostics.convergence`` of at most 200 named parameters, or of predictions.

        Predictions are diagnosed at 20 test inputs.  Weights of a network are unnamed and not
        identified: units can be permuted, so that chains which agree in every prediction differ in
        every weight.  Predictions are means, or log odds relative to the first class.
        """
        from components.metrics import diagnostics

        if posterior.n_draws < diagnostics.FEWEST_DRAWS or posterior.log_weights is not None:
            return diagnostics.convergence(posterior)[0]
        if 0 < len(posterior.names) <= MOST_PARAMETERS:
            return diagnostics.convergence(posterior)[0]
        x = self.test.x
        rows = spaced_rows(len(x), INPUTS_DIAGNOSED, device=x.device)
        with torch.no_grad():
            predictive = posterior.predictive(posterior.flat, x[rows])
        return diagnostics.convergence(posterior, _predict_by_chain(posterior, predictive))[0]

    def _agreement(self, posterior: HoldsDraws, predictive: Predictive) -> dict[str, float]:
        """``rhat_predictions``: the largest R̂ of the predictions at the test inputs.

        It requires at least two chains of unweighted draws and uses at most 100 of the test inputs,
        independently of the parameters.
        """
        from components.metrics import diagnostics

        chains = posterior.n_chains
        n = posterior.n_draws
        if (
            chains < 2
            or n < diagnostics.FEWEST_DRAWS
            or posterior.log_weights is not None
            or posterior.replicates > 1
        ):
            return {}
        rows = spaced_rows(len(self.test.x), INPUTS_COMPARED)
        f = _predict_by_chain(posterior, predictive, rows)
        return {
            "rhat_predictions": float(
                diagnostics.worst_coordinate_value(
                    diagnostics.split_rhat(f), diagnostics.resting(f), largest=True
                )
            )
        }

    def describe(self) -> dict[str, str]:
        """Facts for the terminal and the record."""
        labels = int(self.train.mask.sum())
        inputs = f"{self.n_inputs}"
        if self.input_units is not None:
            inputs += f", {self.input_units}"
            inputs += "" if self.bounds is None else " in [{:g}, {:g}]".format(*self.bounds)
            inputs += (
                ""
                if self.attacker is None
                else f" (attacker.eps is in {SIZES_IN[self.input_units]})"
            )
        return {
            "data": self.name,
            "training rows": f"{self.n:,} ({labels:,} labels)",
            "test rows": f"{self.test.x.shape[0]:,}",
            "inputs": inputs,
            "tasks": f"{self.n_tasks}",
            "batches": describe_batches(self.n, self.batch_size),
        }
