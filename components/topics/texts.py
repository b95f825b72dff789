"""Texts of the user as word counts."""

from __future__ import annotations

from typing import Literal

from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.datasets.own.file_rows import DELIMITERS, decode, find_delimiter
from components.datasets.own.own_file import OwnFile
from components.datasets.text.words import UNSPACED, tokens_of
from components.errors import ConfigMismatchError
from components.registry import register
from components.topics.corpus import Corpus
from components.topics.counted_corpus import CountingKeys, build_corpus


@register("dataset", "texts")
class Texts(OwnFile[Corpus], CountingKeys):
    """The user's texts as word counts: a folder of text files, or one file.

    The vocabulary comes only from the training documents.  A document is a file of the
    folder (``*.txt``, in subfolders too), or a line of the file; ``document`` overrides
    this.  Words, vocabulary and hold-out are as in ``word_counts``; letters include their accents
    and marks.  The encoding of a file is UTF-8, UTF-16 with a byte order mark, or Windows-1252
    otherwise.

    Raises:
        DataUnavailableError: no such file or folder.
        DamagedFileError: a file has no text.
        ConfigMismatchError: fewer than two documents contain a word.

    Source: Blei, Ng and Jordan (2003), section 7.1 (documents as counts, a list of stop
    words left out).
    """

    kind = "unlabelled"
    values = "count"
    reads_folders = True
    document: Literal["auto", "line", "file"]
    encoding: str | None

    def load(self, rng: Rng, setting: Setting) -> Corpus:
        path = self.file(setting.data_dir)
        files = self.files(setting.data_dir)
        texts = [decode(file, self.encoding)[0] for file in files]
        by_line = self.document == "line" or (self.document == "auto" and path.is_file())
        if by_line:
            texts = [line for text in texts for line in text.rstrip().splitlines()]
        documents = [tokens for text in texts if (tokens := tokens_of(text))]
        if len(documents) < 2:
            unit = "lines" if path.is_file() else "files"
            raise ConfigMismatchError(
                f"dataset.path={self.path}: {len(documents)} documents with a word, but at least 2 "
                "are required; give a folder of texts or a file with one document per line (the "
                f"{unit} were read as dataset.document={self.document})"
            )
        name = self.identity(setting.data_dir, setting.offline)
        corpus = build_corpus(documents, self, name, rng, setting)
        corpus.about |= self._remarks(texts, len(texts) - len(documents), by_line)
        return corpus

    def _remarks(self, texts: list[str], n_empty: int, by_line: bool) -> dict[str, str]:
        """Return signs of texts with unintended word counts."""
        out = {"documents without a word": f"{n_empty}, excluded"} if n_empty else {}
        if by_line and (mark := find_delimiter(texts, ",;\t|")):
            out["a table"] = (
                f"cells separated by {DELIMITERS[mark]}: names, numbers and labels count as words; remove them from the texts"
            )
        letters = "".join(texts)
        n_unspaced = len(UNSPACED.findall(letters))
        if 10 * n_unspaced > len(letters):
            out["scripts without blanks"] = (
                f"{n_unspaced:,} letters in scripts without word boundaries; separate words by blanks with a segmenter"
            )
        return out
