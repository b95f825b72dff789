"""Texts of the user's own as counts of their words."""

from __future__ import annotations

from typing import ClassVar, Literal

from components.contracts.problems import Kind, Values
from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.datasets.own.own_file import OwnFile
from components.datasets.own.text_table import decode
from components.datasets.text.sms_spam import words_of
from components.errors import ConfigMismatchError
from components.registry import register
from components.topics.corpus import Corpus
from components.topics.counted_corpus import CountingKeys, build_corpus


@register("dataset", "texts")
class Texts(OwnFile[Corpus], CountingKeys):
    """The user's texts as word counts: a folder of text files, or one file.

    The counted words are the ones of the training documents.  A document is a file of the
    folder (``*.txt``, in subfolders too), or a line of the file; ``document`` overrides
    this.  Words, vocabulary and hold-out are as in ``word_counts``.  The encoding of a file
    is UTF-8, UTF-16 by its first bytes, or else Windows-1252.

    Raises:
        DataUnavailableError: no such file or folder.
        DamagedFileError: no text.
        ConfigMismatchError: fewer than two documents with a word.

    Source: Blei, Ng and Jordan (2003), section 7.1 (documents as counts, a list of stop
    words left out).
    """

    kind: ClassVar[Kind] = "unlabelled"
    values: ClassVar[Values | None] = "count"
    reads_folders: ClassVar[bool] = True
    document: Literal["auto", "line", "file"]
    encoding: str | None

    def load(self, rng: Rng, setting: Setting) -> Corpus:
        path = self.file(setting.data_dir)
        files = self.files(setting.data_dir)
        texts = [decode(file, self.encoding)[0] for file in files]
        if self.document == "line" or (self.document == "auto" and path.is_file()):
            texts = [line for text in texts for line in text.splitlines()]
        documents = [words for text in texts if (words := words_of(text))]
        if len(documents) < 2:
            unit = "lines" if path.is_file() else "files"
            raise ConfigMismatchError(
                f"dataset.path={self.path}: {len(documents)} documents with a word, at least 2 are needed; name a folder of "
                f"texts or a file with a document in each line (the {unit} were read as dataset.document={self.document})"
            )
        return build_corpus(
            documents, self, self.identity(setting.data_dir, setting.offline), rng, setting
        )
