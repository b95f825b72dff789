"""Examination of a network of the user's own, once, before it is trained: what its rows depend on,
and what its outputs are."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping

import torch
from torch import Tensor

from components.contracts.attackers import Attacker, Evasion
from components.contracts.class_outputs import CLOSE, NonLogitKind, Outputs, guess_output_kind
from components.errors import ConfigMismatchError, QuestionableConfigWarning
from components.maths.exponential.global_stream import keep_global_streams
from components.maths.exponential.standard_draws import normal_like
from components.maths.spacing import spaced_rows

ROWS = 16  # training rows used for the examination
OUTPUT_TOLERANCE = 1e-4  # relative difference of outputs that counts as equal, in either precision
PROBE_SCALE = 0.5  # tried with this multiple of its own parameters
# standard deviations of noise on parameters under which it is examined
JITTERS = 2 * (0.1, 1.0, 3.0, 30.0, 1e3, 1e5)
# number of these that must give finite outputs, or outputs that merely are in [0, 1] are not judged
FEWEST = 2
SLACK = 1e-3  # tolerance for a probability outside of [0, 1]

Answer = Callable[[Tensor], Tensor]  # x [B, D] -> outputs [B, ...]
NetworkOutputsFn = Callable[[Tensor, Tensor], Tensor]  # θ [P], x [B, D] -> outputs [B, ...]

LOOKS: dict[NonLogitKind, str] = {
    "sums to one": "every row of its outputs sums to one, as probabilities do",
    "in [0, 1]": "every output lies in [0, 1], as those of a sigmoid do",
    "below zero": "no output is above 0, as logarithms of probabilities are",
}


def pick_spaced_rows(x: Tensor) -> Tensor:
    """At most ``ROWS`` rows of x [N, D], from its first to its last."""
    return x[spaced_rows(len(x), ROWS, device=x.device)]


def check_rows(answer: Answer, x: Tensor, where: str) -> None:
    """Each row is answered by itself, twice the same, and inputs stay as they are.

    Raises:
        ConfigMismatchError: they do not."""
    rows = x.clone()
    half = max(1, len(x) // 2)
    with torch.no_grad(), keep_global_streams(x.device):
        first = answer(rows)
        if not torch.equal(rows, x):
            raise ConfigMismatchError(
                f"{where}: changes its input in place (x -= …, x[…] = …, or a layer with inplace=True); write x = x - …, for "
                "the rows are used again"
            )
        if not is_close(answer(x.clone()), first):
            raise ConfigMismatchError(
                f"{where}: gives two answers to the same rows: its forward draws random numbers (as F.dropout does unless it "
                "is given training=self.training), or remembers; drop units by layers of nn.Dropout"
            )
        if not all(
            is_close(values[-half:], first[:half])
            for values in _outputs_in_larger_batches(answer, x, half)
        ):
            raise ConfigMismatchError(
                f"{where}: answers a row by the other rows of its batch (statistics of the batch, such as x - x.mean(0) or "
                "batch normalisation with track_running_stats=False); keep statistics of the training rows as buffers"
            )


def _outputs_in_larger_batches(answer: Answer, x: Tensor, count: int) -> Iterator[Tensor]:
    """Answers to batches that end with the first ``count`` rows of x [N, D].

    The batches hold only these rows, other rows before them, and rows outside the range of
    x before them.
    """
    span = x.amax() - x.amin() + 1
    yield answer(x[:count].clone())
    yield answer(torch.cat([x[count:], x[:count]]))
    try:
        yield answer(torch.cat([x.flip(0) - span, x + span, x[:count]]))
    except Exception:  # a module that rejects such rows, as an embedding does, gives no information
        return


def is_close(a: Tensor, b: Tensor) -> bool:
    """True if outputs are equal up to rounding."""
    return a.shape == b.shape and torch.allclose(
        a, b, rtol=OUTPUT_TOLERANCE, atol=OUTPUT_TOLERANCE, equal_nan=True
    )


def check_finite(values: Tensor, where: str, n_classes: int) -> None:
    """Check that the outputs [B, T, C] are numbers.

    Outputs of several classes may be −∞, for a class that is impossible, but not all of
    them.

    Raises:
        ConfigMismatchError: they are not.
    """
    possible = values.isfinite() | (values.isneginf() if n_classes > 1 else False)
    bad = ~possible.flatten(1).all(1) | (~values.isfinite()).all(-1).any(-1)
    if bool(bad.any()):
        outside = values[bad][~values[bad].isfinite()]
        raise ConfigMismatchError(
            f"{where}: gives {float(outside[0]):g} for {int(bad.sum())} of {len(values)} training rows, before anything is "
            "learnt; keep logarithms, square roots and quotients in its forward to where they are finite"
        )


def check_outputs(
    answer: NetworkOutputsFn,
    theta: Tensor,
    x: Tensor,
    outputs: Outputs | None,
    where: str,
) -> None:
    """Outputs can be what ``outputs`` says of them; None: logits, unless they look like something
    else.

    What looks like probabilities has to do so under other parameters too: logits of small weights
    may lie in [0, 1] by chance.

    Args:
        answer: outputs [B, T, C], or [B, T, 1] of one output for each binary label.
        theta: parameters as they are [P].
        where: what a complaint is about.

    Raises:
        ConfigMismatchError: they cannot."""
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
    if look == "sums to one" and "in [0, 1]" in tried:  # as for a softmax with clipped ends
        look = "in [0, 1]"
    if look != "sums to one" and (outputs == "logits" or len(tried) < FEWEST):
        return
    allowed = {look, "sums to one"} if look == "in [0, 1]" else {look}
    if not allowed.issuperset(tried):
        return
    meant = "log_probabilities" if look == "below zero" else "probabilities"
    mend = f"set model.outputs={meant}, or leave the last softmax or sigmoid out"
    if look != "sums to one":
        mend += " (model.outputs=logits if they are meant so)"
    raise ConfigMismatchError(f"{where}: {LOOKS[look]}, where logits belong; {mend}")


def _warn_of_sums(values: Tensor, outputs: Outputs, where: str) -> None:
    """Warn if probabilities [B, T, C] of several classes do not sum to one."""
    total = (values if outputs == "probabilities" else values.exp()).sum(-1)
    if values.shape[-1] > 1 and not bool(((total - 1).abs() < 10 * CLOSE).all()):
        warnings.warn(
            QuestionableConfigWarning(
                f"model.outputs={outputs}: the rows of {where} sum to {total.min():.3g} … {total.max():.3g} and not to one; "
                "each is divided by its sum; give probabilities of classes that exclude each other"
            ),
            stacklevel=1,
        )


def _outputs_under_noise(answer: NetworkOutputsFn, theta: Tensor, x: Tensor) -> Iterator[Tensor]:
    """Outputs under noise on the parameters, where they are numbers."""
    generator = torch.Generator().manual_seed(0)
    for scale in JITTERS:
        z = normal_like(theta, generator)
        try:
            values = answer(theta + scale * z, x)
        except ConfigMismatchError:  # parameters that have to be positive, for example
            continue
        if bool(torch.isfinite(values).all()) and bool((values != 0).any()):
            yield values


def check_declared(values: Tensor, outputs: Outputs, where: str) -> None:
    """Probabilities lie in [0, 1], logarithms of them below 0.

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
            f"model.outputs={outputs}: {where} gives {float(outside[0]):.4g}, which is none; "
            "set model.outputs to what the outputs are (logits | probabilities | log_probabilities)"
        )


def training_fault(
    answer: NetworkOutputsFn, theta: Tensor, x: Tensor, pieces: Mapping[str, int]
) -> str | None:
    """Reason why the outputs cannot be trained, or None.

    The gradient in the parameters is not finite where training begins, or zero everywhere; or it is
    zero in all of a parameter that the outputs depend on, which only its prior would then move.

    Args:
        pieces: number of elements of each parameter in θ, in order.
    """
    nothing = (
        "its outputs do not depend on its parameters in a way that can be followed, so that nothing is learnt; leave "
        "torch.no_grad, detach and rounding out of forward, or take inference=fixed"
    )
    generator = torch.Generator().manual_seed(0)
    for scale in (0.0, *JITTERS[:3]):
        z = normal_like(theta, generator)
        leaf = (theta.detach() + scale * z).requires_grad_(True)
        with torch.enable_grad():
            try:
                values = answer(leaf, x)
            except ConfigMismatchError:
                continue
            if not values.requires_grad:
                return nothing
            weights = normal_like(values, generator)
            (gradient,) = torch.autograd.grad((weights * values).sum(), leaf, allow_unused=True)
        if gradient is None:
            continue
        if scale == 0 and not bool(gradient.isfinite().all()):
            return (
                "the gradient of its outputs in its parameters is not finite where training begins (as of the logarithm of a "
                "softmax that is 0: use log_softmax); mend its forward, or take inference=fixed"
            )
        if bool((gradient != 0).any()):
            return _unfollowed_fault(answer, leaf.detach(), x, gradient, pieces)
    return nothing


@torch.no_grad()
def _unfollowed_fault(
    answer: NetworkOutputsFn, theta: Tensor, x: Tensor, gradient: Tensor, pieces: Mapping[str, int]
) -> str | None:
    for name, piece, slope in zip(
        pieces, *(t.split([*pieces.values()]) for t in (theta, gradient)), strict=True
    ):
        if not bool(slope.any()):
            values = answer(theta, x)
            piece.mul_(PROBE_SCALE)
            if not is_close(answer(theta, x), values):
                return (
                    f"{name} has no gradient, though the outputs depend on it (as under torch.no_grad, or detached), so that "
                    "only its prior would move it; freeze it by requires_grad_(False), or take inference=fixed"
                )
    return None


def check_input_gradient(
    answer: NetworkOutputsFn, theta: Tensor, x: Tensor, attacker: Attacker | None, where: str
) -> None:
    """Check that an attacker that follows the gradient in the inputs finds one.

    Raises:
        ConfigMismatchError: there is no gradient.
    """
    if not isinstance(attacker, Evasion) or not attacker.follows_gradient:
        return
    with torch.enable_grad():
        if answer(theta.detach(), x.detach().clone().requires_grad_(True)).requires_grad:
            return
    raise ConfigMismatchError(
        f"{where}: its outputs do not depend on its inputs in a way that can be followed, and attacker={attacker.name} follows "
        "the gradient; leave torch.no_grad and detach out of forward, or take attacker=square or attacker=random_noise"
    )
