"""Common settings of the deep GP family."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field, NonNegativeFloat, PositiveFloat, PositiveInt

from components.maths.kernels import Shape
from components.models.deep_gp.likelihoods import Link


class DeepGPSettings(BaseModel):
    """Fields of smdgp, mmdgp, cmdgp and idgp; defaults are in their YAML."""

    inner_dim: PositiveInt
    # inner layers under the top one, >= 0 (0: a shallow sparse GP for each task)
    depth: Annotated[int, Field(ge=0)]
    # true: the processes of an inner layer share kernel and inducing inputs (faster); false: each
    # has its own
    tied: bool
    # inner layers: matern12 | matern32 | matern52 | squared_exponential | linear | arc_cosine0 |
    # arc_cosine1 | arc_cosine2, Boustati eqs. (2.18) to (2.20); linear_bias, arc_cosine0_bias,
    # arc_cosine1_bias, arc_cosine2_bias: with a random constant
    inner_kernel: Shape
    inner_ard: bool  # true: a lengthscale for each input of an inner layer
    # initial value, > 0, in units of the layer's inputs; null: sqrt(number of inputs)
    inner_lengthscale: PositiveFloat | None
    inner_variance: PositiveFloat  # initial signal variance of the inner processes, > 0
    # zero | linear: fixed identity or principal axes (Salimbeni and Deisenroth 2017)
    inner_mean: Literal["zero", "linear"]
    # initial sd of q(v), whitened inducing values, inner layers, > 0 (Salimbeni and Deisenroth:
    # 1e-5)
    inner_q_scale: PositiveFloat
    # sd of the random initial mean of q(v), inner layers, >= 0: above 0 the processes start
    # differently; 1: a prior draw
    inner_q_mean: NonNegativeFloat
    # kernel of the top layer, always ARD, Boustati eq. (3.15); linear: a linear mixing of the
    # latent processes, eq. (3.16)
    top_kernel: Shape
    top_lengthscale: PositiveFloat | None  # initial value, > 0; null: sqrt(number of features)
    top_variance: PositiveFloat  # initial signal variance of the top layer, > 0
    # zero | linear: a learned linear function of the features, from 0
    top_mean: Literal["zero", "linear"]
    # initial sd of q(v), whitened inducing values, top layer, > 0; 1: the prior
    top_q_scale: PositiveFloat
    pass_inputs: bool  # true: the top layer gets the inputs and the latent features
    # inducing inputs of each shared process, at most the number of training rows (A.1.2: 100); see
    # inducing_by_task
    n_inducing: PositiveInt
    # rows: training rows drawn at random | kmeans: centroids (A.1.1); higher layers propagate them
    inducing: Literal["rows", "kmeans"]
    # true: task-specific processes have n_inducing each, initialised from the task's rows; dealt:
    # n_inducing in total, 1/T of them for each task (A.1: "distributed per task"), from its rows;
    # false: one set for all
    inducing_by_task: bool | Literal["dealt"]
    # real labels: initial noise variance, > 0, in units of the standardised labels (A.1.2: 1e-6)
    noise_variance: PositiveFloat
    # binary labels: probit | logit; log: counts, Poisson with rate exp(f) (2.1.2.2)
    link: Link
    quadrature_nodes: PositiveInt  # binary labels: Gauss-Hermite nodes, >= 1
    jitter: PositiveFloat  # added to the diagonal of K_zz, in units of the signal variance, > 0
