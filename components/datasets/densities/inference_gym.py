"""Targets of the Inference Gym, with reference moments from long runs of Stan or from quadrature."""

from __future__ import annotations

import json
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.datasets.densities.posteriordb import SIMULATED, simulated_regression
from components.datasets.inference_gym_densities import TARGETS
from components.datasets.stand_in import FilesOrStandIn, StandInDataset
from components.problems.density import Density
from components.registry import register

FOLDER = "inference_gym"
ROWS_FILE = f"{FOLDER}/german_numeric.csv"
# no second moment: the tail is too heavy to be estimated by any run
HEAVY_TAILED = {"stochastic_volatility_small": {"mean_log_volatility"}}


def paths(target: str) -> tuple[str, ...]:
    """Files of a target, inside the data folder."""
    rows = (ROWS_FILE,) if target.startswith("german") else ()
    return (f"{FOLDER}/{target}.json", *rows)


@register("dataset", "inference_gym")
class InferenceGym(StandInDataset[Density]):
    """Eleven posteriors with 25 to 2,519 unknowns and reference moments.

    Regressions of German credit data (logistic, probit, sparse), Brownian motions and Lorenz
    bridges with known and unknown scales, an item response model, a log-Gaussian Cox process, and
    stochastic volatility (small and whole).  The densities are written over unconstrained θ [K, P]
    with log-Jacobians; moments refer to the parameters.  The standard error of a second moment is
    derived from the standard error of the mean, as for a Gaussian parameter.
    ``mean_log_volatility`` of the small stochastic volatility is not scored because its tail is too
    heavy.  If the files are not available, a simulated regression with exact moments replaces them,
    under its own name and with a warning.

    Raises:
        DataUnavailableError: the files are not available and ``offline`` is error.
        DamagedFileError: a file does not match its checksum.

    Source: Sountsov, Radul & contributors (2020), Inference Gym 0.0.5.
    """

    kind = "density"
    vectorised = True
    target: Literal[
        "brownian_motion",
        "brownian_motion_unknown_scales",
        "german_credit_logistic",
        "german_credit_probit",
        "german_credit_sparse",
        "item_response",
        "log_gaussian_cox",
        "lorenz_bridge",
        "lorenz_bridge_unknown_scales",
        "stochastic_volatility",
        "stochastic_volatility_small",
        "linear-regression-sim",
    ]
    offline: Literal["simulate", "error"]

    def source(self) -> FilesOrStandIn:
        is_simulated = self.target == SIMULATED
        files = () if is_simulated else paths(self.target)
        what = f"dataset.target={self.target}"
        substitute = "a simulated linear regression"
        return FilesOrStandIn(
            files, self.target, SIMULATED, substitute, is_simulated, self.offline, what
        )

    def load(self, rng: Rng, setting: Setting) -> Density:
        name, files = self.locate(setting)
        like = setting.tensor([])
        if not files:
            return simulated_regression(name, setting, like)
        content = json.loads(files[0].read_text(encoding="utf-8"))
        data = content["data"]
        for rows_file in files[1:]:
            data = {"rows": np.loadtxt(rows_file, delimiter=",")}
        target = TARGETS[self.target](data, like)
        left_out = HEAVY_TAILED.get(self.target, set())
        scored = [i for i, name in enumerate(target.names) if name not in left_out]

        def gather(field: str) -> Tensor:
            blocks = [like.new_tensor(each[field]).flatten() for each in content["truth"].values()]
            return torch.cat(blocks)[scored]

        mean, sd, error = map(gather, ("mean", "standard_deviation", "mean_standard_error"))
        return target.to_density(
            name,
            setting,
            mean,
            sd,
            names=[target.names[i] for i in scored],
            constrain=lambda theta: target.constrain(theta)[:, scored],
            mean=mean,
            second_moment=mean.square() + sd.square(),
            mean_error=error,
            # ratio of the sd of θ² to the sd of θ, for a Gaussian θ
            second_moment_error=error * (2 * sd.square() + 4 * mean.square()).sqrt(),
            scale=target.scale(mean, sd),
        )
