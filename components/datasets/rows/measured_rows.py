"""Measurements of flowers, wines, oil and faces, with classes held out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np
import torch
from pydantic import Field, PositiveInt
from torch import Tensor

from components.contracts.problems import Rows, Values
from components.contracts.roles import BetweenZeroAndOne, Dataset, Setting, ZeroToBelowOne
from components.contracts.streams import Rng
from components.datasets.bundled import locate_package
from components.datasets.files import locate
from components.figures.latent.latent_images import latent_plane, prior_samples, reconstructions
from components.figures.latent.latent_map import latent_map
from components.figures.variational.clusters import clusters
from components.problems.unlabelled import Unlabelled
from components.registry import register

FILES = {"iris": "iris.csv", "wine": "wine_data.csv"}
DATA_FILES = {"oil_flow": "gplvm/oilFlow3Class.mat", "frey_faces": "images_small/freyfaces.npz"}
FACE = (28, 20)  # pixels of a Frey face


class MeasuredTable(NamedTuple):
    """Rows, their classes if known, and the number of held-out rows at the end."""

    x: Tensor  # [N, D]
    classes: Tensor | None  # [N]
    n_test: int | None  # None means a random share


def read_rows(path: Path, name: str) -> MeasuredTable:
    """Rows of a file in the data folder or in scikit-learn."""
    if name == "oil_flow":
        from scipy.io import loadmat

        content = loadmat(path)
        x, y = (
            torch.from_numpy(np.concatenate([content[f"DataTrn{part}"], content[f"DataTst{part}"]]))
            for part in ("", "Lbls")
        )
        return MeasuredTable(x.double(), y.argmax(1), len(content["DataTst"]))
    if name == "frey_faces":
        return MeasuredTable(torch.from_numpy(np.load(path)["images"]).double() / 255, None, None)
    table = torch.from_numpy(np.loadtxt(path, delimiter=",", skiprows=1))
    return MeasuredTable(table[:, :-1], table[:, -1].long(), None)


@register("dataset", "measured_rows")
class MeasuredRows(Dataset[Unlabelled]):
    """Measured data: 150 irises or 178 wines of three classes (no download needed), 2,000 gamma
    densities of oil, gas and water in a pipe with three kinds of flow, or 1,965 photographs of a
    face.

    Irises have 4 lengths, wines 13 analyses, oil_flow 12 densities (the published training and
    test rows, 1,000 each), frey_faces 28 × 20 pixels in [0, 1], which are not standardised.
    A random permutation drawn from the seed holds out a ``test_share``; values are standardised by
    the other rows, and only ``columns`` are used if given.  Classes are never used for learning:
    clusters of held-out rows are compared with them.  A share ``gaps`` of all (standardised) values
    is removed at random and held out as the truth for imputation.  x [N, D], NaN in gaps.

    Raises:
        ValueError: the set does not have the column.
        DataUnavailableError: the file of oil_flow or frey_faces is unavailable.

    Source: Fisher (1936); Forina et al. (1988), as shipped by scikit-learn; Bishop and James
    (1993); Roweis and Saul (2000).
    """

    kind = "unlabelled"
    values = "real"
    set: Literal["iris", "wine", "oil_flow", "frey_faces"]
    columns: list[Annotated[int, Field(ge=1)]] | None
    test_share: BetweenZeroAndOne
    n_train: PositiveInt | None
    gaps: ZeroToBelowOne

    def value_kind(self) -> Values:
        return "incomplete" if self.gaps else "real"

    def identity(self, data_dir: object, offline: bool) -> str:
        return self.set

    def load(self, rng: Rng, setting: Setting) -> Unlabelled:
        if self.set in DATA_FILES:
            path = locate(Path(setting.data_dir), DATA_FILES[self.set], setting.offline)
        else:
            path = locate_package("sklearn") / "datasets" / "data" / FILES[self.set]
        x, y, n_test = read_rows(path, self.set)
        if self.columns is not None:
            if max(self.columns) > x.shape[1]:
                raise ValueError(f"columns: {self.set} has only {x.shape[1]}")
            x = x[:, [c - 1 for c in self.columns]]
        if n_test is None:
            order = torch.randperm(len(x), generator=rng.data)
            n_test = max(1, round(self.test_share * len(x)))
            test = order[:n_test]
            train = order[n_test:]
        else:
            rows = torch.arange(len(x))
            test = rows[-n_test:]
            train = rows[:-n_test]
            if self.n_train is not None:
                train = train[torch.randperm(len(train), generator=rng.data)]
        train = train[: self.n_train]
        is_image = self.set == "frey_faces" and self.columns is None
        if not is_image:
            x = (x - x[train].mean(0)) / x[train].std(0, correction=0)
        shape = FACE if is_image else x.shape[1:]
        x = setting.place(x.view(-1, *shape))
        observed = x
        if self.gaps:
            gaps = torch.rand(x.shape, generator=rng.data) < self.gaps
            observed = x.masked_fill(gaps.to(x.device), torch.nan)
        return Unlabelled(
            self.set,
            self.value_kind(),
            Rows(observed[train], 1.0),
            Rows(observed[test], 1.0),
            None,
            image_shape=FACE if is_image else None,
            test_classes=None if y is None else y[test],
            complete=x[torch.cat([train, test])] if self.gaps else None,
            figures=[clusters, latent_map, reconstructions, prior_samples, latent_plane],
        )
