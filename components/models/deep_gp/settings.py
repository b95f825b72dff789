"""Settings that every model of the deep GP family has, under the same names, so that ``model=`` can be switched."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field, NonNegativeFloat, PositiveFloat, PositiveInt

from components.maths.kernels import Shape


class DeepGPSettings(BaseModel):
    """Fields of smdgp, mmdgp, cmdgp and idgp; meanings and defaults stand in their YAML."""

    inner_dim: PositiveInt
    depth: Annotated[int, Field(ge=0)]
    tied: bool
    inner_kernel: Shape
    inner_ard: bool
    inner_lengthscale: PositiveFloat | None
    inner_variance: PositiveFloat
    inner_mean: Literal["zero", "linear"]
    inner_q_scale: PositiveFloat
    inner_q_mean: NonNegativeFloat
    top_kernel: Shape
    top_lengthscale: PositiveFloat | None
    top_variance: PositiveFloat
    top_mean: Literal["zero", "linear"]
    top_q_scale: PositiveFloat
    pass_inputs: bool
    n_inducing: PositiveInt
    inducing: Literal["rows", "kmeans"]
    inducing_by_task: bool
    noise_variance: PositiveFloat
    link: Literal["probit", "logit"]
    quadrature_nodes: PositiveInt
    jitter: PositiveFloat
