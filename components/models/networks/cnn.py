"""A small convolutional network for images."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, PositiveFloat, PositiveInt

from components.contracts.capabilities import CAPABILITIES, AffineLayers, Dropout
from components.contracts.plugins.protocols import protocols_of
from components.contracts.requirements import Requirements
from components.contracts.roles import NonEmptyList
from components.contracts.streams import Rng
from components.models.networks.activations import Activation
from components.models.networks.convolutions import ConvolutionSettings, Downsampling
from components.models.networks.feed_forward import DropoutModel, FeedForward
from components.problems.supervised import Supervised
from components.registry import register


def _check_odd_kernel(kernel: int) -> int:
    if kernel % 2 == 0:
        raise ValueError(f"kernel: must be odd, not {kernel}; use {kernel + 1}")
    return kernel


@register("model", "cnn")
class CNN(DropoutModel):
    """Convolutional network: convolutions with pooling, then affine layers, with a Gaussian prior
    on all weights.

    h_l = pool(a(W_l ∗ h_{l−1} + b_l)), or with stride two instead of pooling (``downsampling``),
    and h_0 = (x − m)/s with the mean m and standard deviation s of the training pixels, so that
    inputs keep the dataset's units; f(x) = W a(… V h_L + c …) + b; θ ~ N(0, s²) independently;
    softmax(f_t).  It is also a log-density over flat parameters [K, P], for samplers and particles.
    x [B, D] -> f [B, T, C].

    Raises:
        ConfigMismatchError: the inputs are not images, or are too small for the poolings.

    Source: LeCun, Bottou, Bengio and Haffner (1998), section II; Springenberg et al. (2015),
    section 2 (stride)."""

    requires = Requirements(
        kinds={"supervised"},
        targets={"binary", "classes"},
        required_traits={"images": "reads images"},
    )
    # weights of a convolution are shared by pixels
    offers = protocols_of(FeedForward, CAPABILITIES) - {AffineLayers, Dropout}

    channels: NonEmptyList[PositiveInt]
    kernel: Annotated[PositiveInt, AfterValidator(_check_odd_kernel)]
    downsampling: Downsampling
    widths: list[PositiveInt]
    activation: Activation
    prior_std: PositiveFloat

    def build(self, problem: Supervised, rng: Rng) -> FeedForward:
        return FeedForward(
            problem,
            rng,
            widths=self.widths,
            activation=self.activation,
            dropout=self.dropout,
            prior_std=self.prior_std,
            noise=1.0,  # unused: only for real labels
            noise_init=1.0,
            noise_spread=None,
            convolutions=ConvolutionSettings(self.channels, self.kernel, self.downsampling),
        )
