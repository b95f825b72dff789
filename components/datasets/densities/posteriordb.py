"""Posteriors of posteriordb, with reference draws as the target of a sampler."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.datasets.named_target import Variable
from components.datasets.posteriordb_densities import DENSITIES
from components.datasets.posteriordb_densities.gaussian_regressions import GaussianRegression
from components.datasets.posteriordb_densities.scale_priors import half_normal
from components.datasets.stand_in import FilesOrStandIn, StandInDataset
from components.problems.density import Density
from components.registry import register

ROWS = 30

SEED = 1931

BETA = (1.0, -0.5, 0.0)

SIGMA = 0.7


def regression(like: Tensor) -> GaussianRegression:
    """Posterior of a linear regression simulated on 30 rows.

    y ~ N(Xβ, σ²), a constant and two inputs with correlation 0.8; β ~ N(0, 2²),
    σ ~ N⁺(0, 1).  The data do not depend on the seed of a run.
    """
    g = torch.Generator().manual_seed(SEED)
    z = torch.randn(ROWS, 3, generator=g, dtype=torch.float64)
    X = torch.stack(
        [torch.ones(ROWS, dtype=torch.float64), z[:, 0], 0.8 * z[:, 0] + 0.6 * z[:, 1]], 1
    )
    y = X @ X.new_tensor(BETA) + SIGMA * z[:, 2]
    prior = ([0.0] * 3, [2.0] * 3)
    return GaussianRegression(
        (Variable("beta", 3),), X.to(like), y.to(like), half_normal(1.0), prior
    )


def simulated_regression(name: str, setting: Setting, like: Tensor) -> Density:
    """Posterior of the simulated regression, with moments from quadrature."""
    density = regression(like)
    mean, second = density.exact_moments()
    sd = (second - mean.square()).sqrt()
    return density.to_density(name, setting, mean, sd, mean=mean, second_moment=second)


SIMULATED = "linear-regression-sim"


def paths(posterior: str) -> tuple[str, str, str, str]:
    """Data, reference draws, reference means and reference means of squares, inside the data
    folder."""
    folder = "posteriordb"
    data = posterior.split("-")[0]
    return (
        f"{folder}/data/{data}.json.zip",
        f"{folder}/draws/{posterior}.json.zip",
        f"{folder}/mean/{posterior}.json",
        f"{folder}/mean_squared/{posterior}.json",
    )


def read(path: Path) -> Any:
    """The content of a JSON file, or of a zip archive that holds one."""
    if path.suffix != ".zip":
        return json.loads(path.read_text(encoding="utf-8"))
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read(archive.namelist()[0]))


@register("dataset", "posteriordb")
class Posteriordb(StandInDataset[Density]):
    """Eleven posteriors of posteriordb with 10,000 reference draws each.

    Among them are a hidden Markov model and a GARCH(1, 1).  ``mean`` and ``second_moment``
    are taken from the reference draws, with their Monte-Carlo errors; the densities are
    rewritten over unconstrained θ [K, P], with log-Jacobians.  If the files cannot be
    obtained, and for ``posterior: linear-regression-sim``, a simulated regression with
    exact moments replaces them, under that name and, if files are missing, with a
    ``SimulatedDataWarning`` warning.

    Raises:
        DataUnavailableError: files cannot be obtained and ``offline`` is error.
        DamagedFileError: a file does not match its checksum.

    Source: Magnusson, Torgander, Bürkner, Zhang, Carpenter & Vehtari (2025); the densities
    are from its models.
    """

    kind = "density"
    vectorised = True
    posterior: Literal[
        "sblri-blr",
        "kidiq-kidscore_momiq",
        "kilpisjarvi_mod-kilpisjarvi",
        "mesquite-logmesquite",
        "nes2000-nes",
        "arK-arK",
        "eight_schools-eight_schools_noncentered",
        "low_dim_gauss_mix-low_dim_gauss_mix",
        "hmm_example-hmm_example",
        "garch-garch11",
        "gp_pois_regr-gp_regr",
        "linear-regression-sim",
    ]
    offline: Literal["simulate", "error"]

    def source(self) -> FilesOrStandIn:
        return FilesOrStandIn(
            paths(self.posterior),
            self.posterior,
            SIMULATED,
            "a simulated linear regression",
            self.posterior == SIMULATED,
            self.offline,
            what=f"dataset.posterior={self.posterior}",
        )

    def load(self, rng: Rng, setting: Setting) -> Density:
        name, files = self.locate(setting)
        like = setting.tensor([])
        if not files:
            return simulated_regression(name, setting, like)
        data, draws, mean, second = map(read, files)
        density = DENSITIES[name](data, like)
        # [10, 1000, P']
        reference = like.new_tensor([[chain[k] for k in density.names] for chain in draws]).mT
        return density.to_density(
            name,
            setting,
            reference.mean((0, 1)),
            reference.std((0, 1)),
            mean=like.new_tensor(mean["mean_value"]),
            second_moment=like.new_tensor(second["mean_squared_value"]),
            mean_error=like.new_tensor(mean["mcse_mean"]),
            second_moment_error=like.new_tensor(second["mcse_mean"]),
            reference_draws=reference,
            scale=density.unconstrain(reference.flatten(0, 1)).std(0),
        )
