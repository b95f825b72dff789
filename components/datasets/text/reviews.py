"""Two thousand film reviews with the authors' ten folds."""

from __future__ import annotations

from pathlib import Path

from pydantic import NonNegativeInt, model_validator

from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.datasets.text.review_files import REVIEWS, reviews
from components.datasets.text.token_rows import LabelledText, TokenRows
from components.errors import ConfigMismatchError
from components.problems.supervised import Supervised
from components.registry import register

FOLDS = 10


@register("dataset", "reviews")
class FilmReviews(TokenRows):
    """2,000 film reviews as rows of tokens, half of them positive, with ten folds.

    Positive reviews are class 1.  With ``fold`` null, replicate r of a run is tested on fold r, the
    200 reviews with r as the hundreds digit of their number (the authors' folds), and trained on
    the other 1,800.  Token 0 is padding (after the last word), 1 a word outside the vocabulary, 2 …
    the ``n_words`` most frequent words of the training reviews, in that order; punctuation marks
    count as words.  If the archive is unavailable, a simulated corpus of the same size, named
    ``reviews-sim``, replaces it with a ``SimulatedDataWarning`` warning, unless ``offline`` is
    error.  x [N, L] integers, y [N, 1].

    Raises:
        DataUnavailableError: the archive is unavailable.
        DamagedFileError: the archive does not match its checksum.
        ConfigMismatchError: the run has more than ten replicates.

    Source: Pang and Lee (2004), section 3.1 (version 2.0).
    """

    stand_in = "a simulated corpus of the same size"
    fold: NonNegativeInt | None

    @model_validator(mode="after")
    def _check_fold(self) -> FilmReviews:
        if self.fold is not None and self.fold >= FOLDS:
            raise ValueError(f"fold: must be 0 to {FOLDS - 1}, not {self.fold}; lower dataset.fold")
        return self

    def file(self) -> str:
        return REVIEWS

    def folds(self, data_dir: Path) -> int | None:
        return FOLDS if self.fold is None else None

    def load(self, rng: Rng, setting: Setting) -> Supervised:
        fold = rng.replicate if self.fold is None else self.fold
        if fold >= FOLDS:
            raise ConfigMismatchError(
                f"replicates: reviews has only {FOLDS} folds, one per replicate; lower replicates to this number"
            )
        name, files = self.locate(setting)
        train: list[LabelledText] = []
        test: list[LabelledText] = []
        for words, label, review_fold in reviews(*files):
            (test if review_fold == fold else train).append((words, label))
        return self.problem(name, train, test, rng, setting)
