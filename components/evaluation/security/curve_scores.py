"""Scores of attacked predictions in a row of a security curve."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from components.contracts.checks import check_shape
from components.contracts.class_outputs import guess_output_kind
from components.contracts.predictive import Categorical, is_finite
from components.errors import ConfigMismatchError
from components.evaluation.security.certificate import Certificate
from components.metrics.classification import expected_calibration_error

CurveRow = dict[str, float | str]  # name -> score or description


def check_logits(predictive: Categorical) -> None:
    """Check for probabilities in place of logits, which a second softmax would flatten together
    with the attack's gradient.

    Raises:
        ConfigMismatchError: every row of logits is nonnegative and sums to one.
    """
    if guess_output_kind(predictive.logits) == "sums to one":
        raise ConfigMismatchError(
            "model: its predictions are probabilities (they sum to one) instead of logits; return "
            "their logarithms"
        )


def correct_predictions(predictive: Categorical, y: Tensor) -> Tensor:
    check_shape("the predicted labels", predictive.logits, None, *y.shape, None)
    return predictive.guess == y  # [B, T]


def accuracy(predictive: Categorical, y: Tensor) -> float:
    return float(correct_predictions(predictive, y)[y >= 0].double().mean())


def certified_scores(
    certificate: Certificate, y: Tensor, row: Mapping[str, float | str]
) -> CurveRow:
    """Share of certified labels, and its gap to the accuracy under attack."""
    share = float(certificate.rows[y >= 0].double().mean())
    scores: CurveRow = {
        "certified_accuracy": share,
        "certificate_gap": float(row["accuracy"]) - share,
        "certificate": certificate.method,
    }
    if certificate.smoothed is not None:
        scores["abstained"] = certificate.smoothed.abstained
    return scores


def hit_scores(predictive: Categorical, y: Tensor, target: int | None) -> dict[str, float]:
    """Effects of an attack: the accuracy, and the share of labels of other classes that are
    classified as its target."""
    scores = {"accuracy": accuracy(predictive, y)}
    if target is not None:
        taken = (predictive.guess == target)[(y >= 0) & (y != target)]
        scores["target_reached"] = float(taken.double().mean()) if len(taken) else 0.0
    return scores


def attacked_scores(
    predictive: Categorical, y: Tensor, right: Tensor, standing: Tensor
) -> dict[str, float]:
    """Scores of predictions at attacked inputs; ``right`` are the labels [B, T] that were correct
    before, and those that no size up to this one has changed."""
    is_labelled = y >= 0
    is_predicted = is_labelled & is_finite(predictive)
    correct = correct_predictions(predictive, y)
    fooled = right & ~correct
    return {
        "unpredicted": int((is_labelled & ~is_predicted).any(1).sum()),
        "worst_case_accuracy": float(standing[is_labelled].double().mean()),
        "log_likelihood": float(predictive.log_prob(y.clamp_min(0))[is_predicted].double().mean()),
        "entropy": float(predictive.entropy[is_predicted].double().mean()),
        "ece": float(
            expected_calibration_error(
                predictive.probs.amax(-1)[is_predicted], correct[is_predicted]
            )
        ),
        "success_rate": float(fooled[is_labelled].sum())
        / max(float(right[is_labelled].sum()), 1.0),
    }
