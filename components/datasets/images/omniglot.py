"""Omniglot characters: the 28 × 28 images used in the literature, or eight alphabets."""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np

from components.contracts.roles import Setting
from components.datasets.data_files import find
from components.datasets.files import warn_simulated
from components.datasets.images.mnist_files import DIGITS, SIDE, Images, Offline, enlarged_digits
from components.datasets.stand_in import FilesOrStandIn
from components.errors import DamagedFileError, DataUnavailableError

WHOLE = "omniglot/chardata.mat"
ADDRESS = "https://github.com/yburda/iwae/raw/master/datasets/OMNIGLOT/chardata.mat"
IN_WHOLE = {"data": 24_345, "testdata": 8_070}  # images of the training and of the test split
PARTS = ("omniglot/images_background_small1.zip", "omniglot/images_background_small2.zip")
DRAWERS_IN_TRAINING = 15  # of the 20 drawers of each character


def average_pixels(images: np.ndarray, side: int) -> np.ndarray:
    """Average images [n, k, k] in [0, 1] over the squares of a grid, with boundary pixels shared by
    area, [n, side, side]."""
    k = images.shape[1]
    edges = np.arange(side + 1) * (k / side)
    pixel = np.arange(k)
    begin = np.maximum(edges[:-1, None], pixel)
    end = np.minimum(edges[1:, None], pixel + 1)
    # share of each pixel in each cell [side, k]
    share = (np.clip(end - begin, 0, None) * (side / k)).astype(np.float32)
    # in [0, 1] up to rounding
    return (share @ images.astype(np.float32) @ share.T).clip(0, 1)


def read_whole(path: Path) -> tuple[Images, Images]:
    """Training and test images [n, 28, 28] in [0, 1], ink 1, upright, with the numbers of their
    alphabets.

    Raises:
        DamagedFileError: the file does not contain 24,345 and 8,070 images of 28 × 28."""
    from scipy.io import loadmat

    try:
        content = loadmat(path)
        parts = [
            (
                content[images].T.reshape(-1, SIDE, SIDE).swapaxes(1, 2).astype(np.float32),
                content[labels].argmax(0),
            )
            for images, labels in (("data", "target"), ("testdata", "testtarget"))
        ]
    except (ValueError, LookupError, OSError, NotImplementedError, TypeError) as error:
        raise DamagedFileError(
            f"{path}: unexpected content ({error}); replace it with {ADDRESS}"
        ) from None
    for (images, labels), expected in zip(parts, IN_WHOLE.values(), strict=True):
        if (
            len(images) != expected
            or len(labels) != expected
            or images.min() < 0
            or images.max() > 1
        ):
            raise DamagedFileError(
                f"{path}: must contain {expected:,} images in [0, 1]; replace it with {ADDRESS}"
            )
    return parts[0], parts[1]


def read_parts(paths: tuple[Path, ...]) -> tuple[Images, Images]:
    """Lake's images from several archives, without duplicates, in path order.

    Images are means over 3.75 × 3.75 pixels, ink 1, with the numbers of their alphabets.
    Drawers 1 to 15 of each character are the training split, 16 to 20 the test split.
    """
    from PIL import Image

    # by alphabet/character/file: two alphabets are in both archives
    scans: dict[str, np.ndarray] = {}
    for path in paths:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                key = name.partition("/")[2]
                if name.endswith(".png") and key not in scans:
                    scans[key] = np.asarray(Image.open(io.BytesIO(archive.read(name))).convert("1"))
    keys = sorted(scans)
    # paper is white, which is 1
    ink = average_pixels(~np.stack([scans[key] for key in keys]), SIDE)
    alphabets = np.unique([key.split("/")[0] for key in keys], return_inverse=True)[1]
    trained = np.array([int(key[-6:-4]) <= DRAWERS_IN_TRAINING for key in keys])  # …/0108_16.png
    return (ink[trained], alphabets[trained]), (ink[~trained], alphabets[~trained])


@cache
def _whole(data_dir: Path) -> Path | None:
    """Path of the complete set, None if absent; looked up once per process, like other files."""
    return find(data_dir, WHOLE)


@dataclass(frozen=True)
class OmniglotFiles:
    """Omniglot as used in the literature, Lake's two small background sets, or the digits.

    The background sets have the name omniglot-partial.  The full set is read from the data folder
    and never downloaded; its checksum is unknown, so its shape is checked.
    """

    genuine: Literal["omniglot", "omniglot-partial"]
    offline: Offline

    @property
    def _partial(self) -> FilesOrStandIn:
        return FilesOrStandIn(
            PARTS,
            "omniglot-partial",
            "digits-enlarged",
            DIGITS,
            simulated=self.offline == "always",
            offline=self.offline,
        )

    def identity(self, data_dir: Path, offline: bool) -> str:
        """The name of the data that ``images`` returns; may download the partial set.

        Raises:
            DataUnavailableError: the set is unavailable and ``offline`` is error."""
        if self.genuine == "omniglot" and self.offline != "always":
            if _whole(Path(data_dir)) is not None:
                return "omniglot"
            if self.offline == "error":
                raise DataUnavailableError(
                    f"{WHOLE}: not in {Path(data_dir)}, and not available for download; copy it "
                    f"there from {ADDRESS}, or use eight of its alphabets, "
                    "dataset.set=omniglot-partial"
                )
        return self._partial.identity(data_dir, offline)

    def images(self, setting: Setting) -> tuple[Images, Images]:
        """Training and test images [n, 28, 28] in [0, 1] with alphabets, or the raw digits (uint8);
        warns about a substitute that was not requested.

        Raises:
            DataUnavailableError: the set is unavailable and ``offline`` is error."""
        name = self.identity(setting.data_dir, setting.offline)
        archive = _whole(Path(setting.data_dir))
        if name == "omniglot" and archive is not None:
            return read_whole(archive)
        paths = self._partial.locate(setting)
        if not paths:
            return enlarged_digits()
        if self.genuine == "omniglot":
            why = f"{WHOLE} is not in {setting.data_dir}"
            warn_simulated("omniglot", "eight of its alphabets (4,840 images)", name, why)
        return read_parts(tuple(paths))
