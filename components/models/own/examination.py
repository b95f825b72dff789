"""Checks of a user's network before training: independence of rows, and form of outputs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from components.contracts.class_outputs import CLOSE, NonLogitKind, Outputs, guess_output_kind
from components.errors import ConfigMismatchError, QuestionableConfigWarning
from components.maths.exponential.global_stream import keep_global_streams
from components.maths.exponential.standard_draws import normal_like
from components.maths.spacing import spaced_rows

ROWS = 16  # training rows used for the examination
# relative difference up to which outputs count as equal, in both precisions
OUTPUT_TOLERANCE = 1e-4
PROBE_SCALE = 0.5  # also checked at this multiple of its parameters
# standard deviations of noise on parameters for the checks
JITTERS = 2 * (0.1, 1.0, 3.0, 30.0, 1e3, 1e5)
# fewest of these with finite outputs to judge outputs that only lie in [0, 1]
FEWEST = 2
SLACK = 1e-3  # tolerance for a probability outside [0, 1]

Answer = Callable[[Tensor], Tensor]  # x [B, D] -> outputs [B, ...]
NetworkOutputsFn = Callable[[Tensor, Tensor], Tensor]  # θ [P], x [B, D] -> outputs [B, ...]

LOOKS: dict[NonLogitKind, str] = {
    "sums to one": "every row of its outputs sums to one, like probabilities",
    "in [0, 1]": "every output lies in [0, 1], like outputs of a sigmoid",
    "below zero": "all outputs are at most 0, like log-probabilities",
}


def pick_spaced_rows(x: Tensor) -> Tensor:
    """At most ``ROWS`` evenly spaced rows of x [N, D]."""
    return x[spaced_rows(len(x), ROWS, device=x.device)]


def check_rows(answer: Answer, x: Tensor, where: str) -> None:
    """Check that rows are independent, outputs are deterministic, and inputs are unchanged.

    Raises:
        ConfigMismatchError: a check fails."""
    rows = x.clone()
    half = max(1, len(x) // 2)
    with torch.no_grad(), keep_global_streams(x.device):
        first = answer(rows)
        if not torch.equal(rows, x):
            raise ConfigMismatchError(
                f"{where}: changes its input in place (x -= …, x[…] = …, or a layer with "
                "inplace=True); write x = x - …, because the rows are reused"
            )
        if not is_close(answer(x.clone()), first):
            raise ConfigMismatchError(
                f"{where}: gives different outputs for the same rows: its forward draws random "
                "numbers (like F.dropout without training=self.training) or has a state; use "
                "nn.Dropout layers for dropout"
            )
        if not all(
            is_close(values[-half:], first[:half])
            for values in _outputs_in_larger_batches(answer, x, half)
        ):
            raise ConfigMismatchError(
                f"{where}: the outputs of a row depend on other rows of its batch (batch "
                "statistics, such as x - x.mean(0) or batch normalisation with "
                "track_running_stats=False); store statistics of the training rows as buffers"
            )


def _outputs_in_larger_batches(answer: Answer, x: Tensor, count: int) -> Iterator[Tensor]:
    """Outputs for batches that end with the first ``count`` rows of x [N, D].

    The batches contain only these rows, preceded by other rows, or preceded by rows outside the
    range of x.
    """
    span = x.amax() - x.amin() + 1
    yield answer(x[:count].clone())
    yield answer(torch.cat([x[count:], x[:count]]))
    try:
        yield answer(torch.cat([x.flip(0) - span, x + span, x[:count]]))
    except Exception:  # a module that rejects such rows, like an embedding, is not checked
        return


def is_close(a: Tensor, b: Tensor) -> bool:
    """True if outputs are equal up to rounding."""
    return a.shape == b.shape and torch.allclose(
        a, b, rtol=OUTPUT_TOLERANCE, atol=OUTPUT_TOLERANCE, equal_nan=True
    )


def check_finite(values: Tensor, where: str, n_classes: int) -> None:
    """Check that the outputs [B, T, C] are numbers.

    Outputs of several classes may be −∞ for impossible classes, but not for all classes.

    Raises:
        ConfigMismatchError: the outputs are not finite.
    """
    possible = values.isfinite() | (values.isneginf() if n_classes > 1 else False)
    bad = ~possible.flatten(1).all(1) | (~values.isfinite()).all(-1).any(-1)
    if bool(bad.any()):
        outside = values[bad][~values[bad].isfinite()]
        raise ConfigMismatchError(
            f"{where}: gives {float(outside[0]):g} for {int(bad.sum())} of {len(values)} training "
            "rows before training; keep logarithms, square roots and quotients in its forward "
            "finite"
        )


def check_outputs(
    answer: NetworkOutputsFn,
    theta: Tensor,
    x: Tensor,
    outputs: Outputs | None,
    where: str,
) -> None:
    """Check that outputs are consistent with ``outputs``; None means logits, unless they look
    otherwise.

    Outputs must also look like probabilities for other parameters, because logits of small weights
    may lie in [0, 1] by chance.

    Args:
        answer: outputs [B, T, C], or [B, T, 1] for one output per binary label.
        theta: current parameters [P].
        where: the subject of error messages.

    Raises:
        ConfigMismatchError: the outputs are inconsistent."""
    with torch.no_grad():
        values = answer(theta, x)
        if outputs == "probabilities" or outputs == "log_probabilities":
            check_declared(values, outputs, where)
            _warn_of_sums(values, outputs, where)
            return
        look = guess_output_kind(values)
        if look is None:
            return
        tried = [guess_output_kind(v) for v in _outputs_under_noise(answer, theta, x)]
    if look == "sums to one" and "in [0, 1]" in tried:  # e.g. a clipped softmax
        look = "in [0, 1]"
    if look != "sums to one" and (outputs == "logits" or len(tried) < FEWEST):
        return
    allowed = {look, "sums to one"} if look == "in [0, 1]" else {look}
    if not allowed.issuperset(tried):
        return
    meant = "log_probabilities" if look == "below zero" else "probabilities"
    mend = f"set model.outputs={meant}, or remove the last softmax or sigmoid"
    if look != "sums to one":
        mend += " (model.outputs=logits if this is intended)"
    raise ConfigMismatchError(f"{where}: {LOOKS[look]}, instead of being logits; {mend}")


def _warn_of_sums(values: Tensor, outputs: Outputs, where: str) -> None:
    """Warn if probabilities [B, T, C] of several classes do not sum to one."""
    total = (values if outputs == "probabilities" else values.exp()).sum(-1)
    if values.shape[-1] > 1 and not bool(((total - 1).abs() < 10 * CLOSE).all()):
        warnings.warn(
            QuestionableConfigWarning(
                f"model.outputs={outputs}: the rows of {where} sum to {total.min():.3g} … "
                f"{total.max():.3g} instead of one; each is divided by its sum; return "
                "probabilities of mutually exclusive classes"
            ),
            stacklevel=1,
        )


def _outputs_under_noise(answer: NetworkOutputsFn, theta: Tensor, x: Tensor) -> Iterator[Tensor]:
    """Outputs under noise on the parameters, if finite."""
    generator = torch.Generator().manual_seed(0)
    for scale in JITTERS:
        z = normal_like(theta, generator)
        try:
            values = answer(theta + scale * z, x)
        except ConfigMismatchError:  # e.g. parameters that must be positive
            continue
        if bool(torch.isfinite(values).all()) and bool((values != 0).any()):
            yield values


def check_declared(values: Tensor, outputs: Outputs, where: str) -> None:
    """Check that probabilities lie in [0, 1] and their logarithms below 0.

    Raises:
        ConfigMismatchError: they do not."""
    low, high = {
        "logits": (-torch.inf, torch.inf),
        "probabilities": (0, 1),
        "log_probabilities": (-torch.inf, 0),
    }[outputs]
    outside = values[(values < low - SLACK) | (values > high + SLACK)]
    if len(outside):
        raise ConfigMismatchError(
            f"model.outputs={outputs}: {where} gives {float(outside[0]):.4g}; set model.outputs to "
            "the type of its outputs (logits | probabilities | log_probabilities)"
        )
