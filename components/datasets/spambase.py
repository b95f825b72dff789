"""E-mails as the words that they hold: UCI spambase, and a simulated corpus of its shape."""

from __future__ import annotations

import functools
import warnings
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, PositiveInt

from components.datasets.files import find, locate, numbers, verify_as, why_unavailable
from components.figures.calibration import calibration
from components.interfaces import Dataset, Domain, Kind, Rng, Setting, Target
from components.problems.supervised import Batch, Supervised
from components.registry import register
from components.trouble import DataUnavailable, SimulatedData

MAILS, WORDS, SPAM = 4_601, 54, 1_813  # mails, words (or characters) looked for, mails that are spam
TEXT, PACKED = "classification/spambase.data", "classification/spambase.data.gz"
TOPICS = 4  # of each class in the simulated corpus
Mails = tuple[NDArray[np.float64], NDArray[np.int64]]  # x [4601, 54] in {0, 1}, y [4601]: 1 for spam


@functools.lru_cache(maxsize=1)
def _read(path: Path) -> Mails:
    rows = numbers(path)
    return (rows[:, :WORDS] > 0).astype(float), rows[:, -1].astype(
        int
    )  # three lengths of runs of capitals are left out


@functools.lru_cache(maxsize=1)
def simulated_mails() -> Mails:
    """As many mails, words and spam as spambase has, one fixed corpus whatever the seed.

    Every mail has one of four topics of its class, and holds word j with a probability of that topic alone, so that
    words are dependent given the class; some words are rare, some all but a proof of either class."""
    rng = np.random.default_rng([*b"spam-sim"])
    y = (np.arange(MAILS) < SPAM).astype(int)
    common = rng.normal(-1.8, 0.9, WORDS)  # log odds of a word in any mail
    tilt = rng.normal(0.0, 1.1, WORDS)  # towards spam (+) or away from it
    topics = rng.normal(0.0, 0.9, (2, TOPICS, WORDS))
    logits = common + np.array([-0.5, 0.5])[:, None, None] * tilt + topics  # [2, TOPICS, WORDS]
    p = 1 / (1 + np.exp(-logits[y, rng.integers(TOPICS, size=MAILS)]))
    return (rng.random((MAILS, WORDS)) < p).astype(float), y


@register("dataset", "spambase")
class Spambase(Dataset):
    """4,601 e-mails, 39.4 % of them spam, each as the presence (1) or absence (0) of 54 words; class 1 is spam.

    Inputs are binary: attacks change words, and gradient attacks are refused.  Repeated hold-out: every replicate puts
    ``test_share`` of a random permutation of its own aside and trains on the others, or on the first ``n_train`` of them,
    so that training sets of different sizes are nested.  Where the file cannot be had a simulated corpus of the same
    size, named ``spam-sim``, takes its place with a ``SimulatedData`` warning, unless ``offline`` is error.
    x [N, 54], y [N, 1].

    Raises DataUnavailable (a file that cannot be had), DamagedFile (numbers whose checksum does not fit).

    Source: Hopkins, Reeber, Forman and Suermondt (1999), UCI repository; Gallego (2021), section 3.2.2."""

    kind: ClassVar[Kind] = "supervised"
    target: ClassVar[Target | None] = "binary"
    domain: ClassVar[Domain] = "binary"
    test_share: Annotated[float, Field(gt=0, lt=1)]
    n_train: PositiveInt | None
    simulated: bool
    offline: Literal["simulate", "error"]
    batch_size: PositiveInt | None

    def _why_unavailable(self, data_dir: Path, offline: bool) -> str | None:
        return None if find(data_dir, PACKED) else why_unavailable(data_dir, (TEXT,), offline)

    def identity(self, data_dir: Path, offline: bool) -> str:
        """The name of the data that ``load`` would use; may download them.

        Raises:
            DataUnavailable: the file cannot be had and ``offline`` is error."""
        why = None if self.simulated else self._why_unavailable(Path(data_dir), offline)
        if why is not None and self.offline == "error":
            raise DataUnavailable(f"{why}; or dataset.offline=simulate to use a simulated corpus")
        return "spam-sim" if self.simulated or why is not None else "spambase"

    def mails(self, data_dir: Path, offline: bool) -> Mails:
        """All mails in the order of the file."""
        why = None if self.simulated else self._why_unavailable(data_dir, offline)
        if why is not None:
            warnings.warn(
                "SIMULATED DATA: dataset=spambase cannot be had, a simulated corpus of the same size takes its place; "
                f"everything is recorded as spam-sim and compares with no published number ({why})",
                SimulatedData,
                stacklevel=1,  # from this file: the runner shows what components warn of
            )
        if self.simulated or why is not None:
            return simulated_mails()
        packed = find(data_dir, PACKED)
        if packed is None:
            return _read(locate(data_dir, TEXT, offline))
        verify_as(packed, TEXT)
        return _read(packed)

    def load(self, rng: Rng, setting: Setting) -> Supervised:
        name = self.identity(setting.data_dir, setting.offline)
        words, spam = self.mails(setting.data_dir, setting.offline)
        x, y = torch.from_numpy(words).to(setting.dtype), torch.from_numpy(spam)[:, None]
        n_test = min(max(1, round(self.test_share * len(x))), len(x) - 1)
        order = torch.randperm(len(x), generator=rng.data)
        kept = order[n_test:] if self.n_train is None else order[n_test : n_test + self.n_train]

        def batch(rows: torch.Tensor) -> Batch:
            mask = torch.ones(len(rows), 1, dtype=torch.bool, device=setting.device)
            return Batch(x[rows].to(setting.device), y[rows].to(setting.device), mask, 1.0)

        return Supervised(
            name=name,
            target="binary",
            train=batch(kept),
            test=batch(order[:n_test]),
            batch_size=self.batch_size,
            n_classes=2,
            task_names=["spam"],
            bounds=(0.0, 1.0),
            domain=self.domain,
            figures=[calibration],
        )
