"""Base classes of image sets without labels: binarisation, hold-out and scoring."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

import torch
from pydantic import NonNegativeInt, PositiveInt
from torch import Tensor

from components.contracts.capabilities import LatentVariable
from components.contracts.problems import Rows, Values
from components.contracts.roles import Dataset, Setting
from components.contracts.streams import Rng
from components.datasets.images.mnist_files import HALF, IdxFiles, Offline, idx_files
from components.datasets.images.omniglot import OmniglotFiles
from components.figures.latent.latent_images import latent_plane, prior_samples, reconstructions
from components.metrics.evidence.held_out import LatentEvidence, Proposal
from components.problems.unlabelled import Unlabelled, sample_binary

BinarisationMode = Literal["static", "dynamic", "threshold", "none"]
# training and held-out images [n, H, W] in [0, 1], classes of the latter
Split = tuple[Tensor, Tensor, Tensor]

# seed of the static draw, the same for every seed of a run, like a file
STATIC = 784


class UnlabelledImages(Dataset[Unlabelled]):
    """Images without labels; a subclass defines their source.

    ``static`` binarises all images in the order of their files before any selection, so an image
    has the same binary pixels in every run."""

    kind = "unlabelled"

    n_train: PositiveInt | None
    n_test: PositiveInt | None
    batch_size: PositiveInt | None
    importance_samples: PositiveInt
    proposal: Proposal
    ais_temperatures: NonNegativeInt
    ais_chains: PositiveInt
    ais_rows: PositiveInt
    best_q_steps: NonNegativeInt
    offline: Offline
    binarised: BinarisationMode

    def source(self) -> IdxFiles | OmniglotFiles | None:
        """Files of the images; None if they ship with a package."""
        raise NotImplementedError

    def value_kind(self) -> Values:
        return "real" if self.binarised == "none" else "binary"

    def asked_by_keys(self) -> dict[type, tuple[str, str]]:
        options = {
            "proposal": (self.proposal, "guide"),
            "ais_temperatures": (self.ais_temperatures, 0),
            "best_q_steps": (self.best_q_steps, 0),
        }
        asking = {key: (now, none) for key, (now, none) in options.items() if now != none}
        now, default = (
            " ".join(f"dataset.{key}={pair[i]}" for key, pair in asking.items()) for i in (0, 1)
        )
        return {LatentVariable: (now, default)} if asking else {}

    def identity(self, data_dir: Path, offline: bool) -> str:
        """The name of the data that ``load`` uses; may download them.

        Raises:
            DataUnavailableError: the files are unavailable and ``offline`` is error."""
        files = self.source()
        name = "digits" if files is None else files.identity(data_dir, offline)
        return name if self.binarised == "none" else f"{name}-{self.binarised}"

    def _binarise_if_static(self, images: Tensor, generator: torch.Generator) -> Tensor:
        """The images, with the fixed binary draw if they are ``static``."""
        if self.binarised != "static":
            return images
        return (torch.rand(images.shape, generator=generator) < images).to(images.dtype)

    def _split(self, rng: Rng, setting: Setting) -> Split:
        files = self.source()
        assert files is not None
        (train, _), (test, labels) = files.images(setting)
        train_rows = torch.randperm(len(train), generator=rng.data)[: self.n_train]
        white = 255 if train.dtype == "uint8" else 1
        fixed = torch.Generator().manual_seed(STATIC)
        if self.binarised == "static":
            images, test_images = (
                self._binarise_if_static(torch.tensor(part) / white, fixed)
                for part in (train, test)
            )
            images = images[train_rows]
            test_images = test_images[: self.n_test]
        else:
            images = torch.tensor(train)[train_rows] / white
            test_images = torch.tensor(test)[: self.n_test] / white
        return images, test_images, torch.tensor(labels)[: self.n_test]

    def load(self, rng: Rng, setting: Setting) -> Unlabelled:
        train, test, classes = self._split(rng, setting)
        shape = tuple(train.shape[1:])
        if self.binarised == "threshold":
            train = train > HALF
            test = test > HALF
        rows, test_rows = (
            Rows(images.flatten(1).to(setting.dtype), 1.0) for images in (train, test)
        )
        if self.binarised == "dynamic":
            test_rows = sample_binary(test_rows, rng.data)
        return Unlabelled(
            name=self.identity(setting.data_dir, setting.offline),
            values=self.value_kind(),
            train=Rows(rows.x.to(setting.device), 1.0),
            test=Rows(test_rows.x.to(setting.device), 1.0),
            batch_size=self.batch_size,
            redrawn=self.binarised == "dynamic",
            image_shape=shape,
            test_classes=classes.long(),
            figures=[reconstructions, prior_samples, latent_plane],
            importance_samples=self.importance_samples,
            evidence=LatentEvidence(
                self.proposal,
                self.importance_samples,
                self.ais_temperatures,
                self.ais_chains,
                self.ais_rows,
                self.best_q_steps,
            ),
        )


class BinarisedImages(UnlabelledImages):
    """One set in MNIST's file format, with pixels 0 or 1."""

    folder: ClassVar[str]
    binarised: Literal["static", "dynamic", "threshold"]

    def source(self) -> IdxFiles:
        return idx_files(self.folder, self.folder, "digits-enlarged", self.offline)
