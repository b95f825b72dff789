"""Densities of the Inference Gym's targets over unconstrained θ, implemented from their equations.

``TARGETS`` builds a density from the data of its file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from components.datasets.inference_gym_densities.brownian_motion import brownian_motion
from components.datasets.inference_gym_densities.german_credit import logistic, probit, sparse
from components.datasets.inference_gym_densities.item_response import item_response
from components.datasets.inference_gym_densities.log_gaussian_cox import log_gaussian_cox
from components.datasets.inference_gym_densities.lorenz_bridge import lorenz_bridge
from components.datasets.inference_gym_densities.volatility import volatility
from components.datasets.named_target import NamedTarget

TARGETS: dict[str, Callable[[dict[str, Any], Tensor], NamedTarget]] = {
    "brownian_motion": brownian_motion,
    "brownian_motion_unknown_scales": brownian_motion,
    "german_credit_logistic": logistic,
    "german_credit_probit": probit,
    "german_credit_sparse": sparse,
    "item_response": item_response,
    "log_gaussian_cox": log_gaussian_cox,
    "lorenz_bridge": lorenz_bridge,
    "lorenz_bridge_unknown_scales": lorenz_bridge,
    "stochastic_volatility": volatility,
    "stochastic_volatility_small": volatility,
}
