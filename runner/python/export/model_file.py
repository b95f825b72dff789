"""Zip file of a fitted model: five files with known names and bounded sizes, without code or
pickle."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load, save
from typing_extensions import TypedDict

from runner.disk.atomic import write_bytes
from runner.disk.plain_file import parse_json
from runner.disk.zips import open_zip
from runner.errors import ConfigError, first_mistake
from runner.execution.storage.packing import Tensors
from runner.terminal.plain import plain

FORMAT = 1  # version of the format; a reader refuses others
MODEL = "model.json"
WEIGHTS = "weights.safetensors"
CONFIG = "config.yaml"
CARD = "README.md"
REQUIREMENTS = "requirements.txt"
# largest size of each file in bytes
LIMITS = {
    MODEL: 32 * 2**20,
    WEIGHTS: 16 * 2**30,
    CONFIG: 5_000_000,
    CARD: 5_000_000,
    REQUIREMENTS: 100_000,
}
KINDS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
MOST_RATIO = 100  # largest compression ratio; a state in JSON has 10
WHEN = (2000, 1, 1, 0, 0, 0)  # time of each file, fixed so that equal models give equal files


class ModelFacts(TypedDict):
    """Content of model.json, without the format and the checksum."""

    runner: str | None  # version that wrote the file
    run: str  # signature
    experiment: str
    data: str
    replicate: Annotated[int, Field(ge=0)]
    step: Annotated[int, Field(ge=0)]
    holds_training_rows: bool
    versions: dict[str, str]  # versions of packages at training
    problem: dict[str, Any]  # JSON of ``described_problem``
    skeleton: dict[str, Any]  # skeleton of the checkpoint
    nonfinite: list[str]  # tensors with NaN or infinities at export


@dataclass(frozen=True)
class ModelFile:
    """Content of a fitted model's file."""

    facts: ModelFacts
    tensors: Tensors
    config: str  # YAML
    card: str
    requirements: str

    def write(self, path: Path) -> None:
        """Write the zip to a temporary file, then rename it."""
        weights = save(self.tensors)
        facts = {
            "format": FORMAT,
            **self.facts,
            "weights_sha256": hashlib.sha256(weights).hexdigest(),
        }
        text = json.dumps(facts, indent=1, ensure_ascii=False).encode()
        entries = {
            CARD: self.card.encode(),
            CONFIG: self.config.encode(),
            MODEL: text,
            REQUIREMENTS: self.requirements.encode(),
            WEIGHTS: weights,
        }
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for name, content in entries.items():
                entry = zipfile.ZipInfo(name, WHEN)
                entry.compress_type = (
                    zipfile.ZIP_STORED if name == WEIGHTS else zipfile.ZIP_DEFLATED
                )
                archive.writestr(entry, content)
        write_bytes(path, buffer.getvalue())


def read_model_file(path: Path) -> ModelFile:
    """Content of a fitted model's file, after verification of names, sizes and checksum.

    Raises:
        ConfigError: the file does not exist, is not a model, or has an unsupported format.
    """
    damaged = f"{path}: not a model of runner export"
    with open_zip(path, damaged, f"; write one with runner export RUN {path.name}") as archive:
        parts = _read_parts(archive, path)
    return _decode(parts, path)


def _read_parts(archive: zipfile.ZipFile, path: Path) -> dict[str, bytes]:
    """Read the files of the zip; raises ConfigError for a wrong name or size."""
    entries = archive.infolist()
    names = [entry.filename for entry in entries]
    foreign = [name for name in names if name not in LIMITS]
    if foreign:
        raise ConfigError(
            f"{path}: contains an unexpected file {foreign[0]!r:.80}; a model of runner export has {', '.join(LIMITS)}"
        )
    if any(entry.compress_type not in KINDS for entry in entries):
        raise ConfigError(f"{path}: unsupported compression; zip it with deflate")
    if missing := [name for name in LIMITS if names.count(name) != 1]:
        raise ConfigError(
            f"{path}: not a model of runner export: it has {names.count(missing[0])} files {missing[0]}; "
            "write one with runner export"
        )
    for entry in entries:
        most = min(LIMITS[entry.filename], MOST_RATIO * (entry.compress_size + 1000))
        if entry.file_size > most:
            raise ConfigError(
                f"{path}: {entry.filename} has {entry.file_size:,} bytes, more than the limit of {most:,}"
            )
    # reading ends at the verified size, independent of the compressed content
    return {entry.filename: archive.open(entry).read(entry.file_size) for entry in entries}


def _decode(parts: dict[str, bytes], path: Path) -> ModelFile:
    """Decode the files; raises ConfigError if one is damaged or the format is unsupported."""
    hint = "write it again with runner export"
    try:
        content = parse_json(parts[MODEL])
        version = content.pop("format")
        checksum = content.pop("weights_sha256", None)
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise ConfigError(f"{path}: {MODEL} is damaged ({error!r:.100}); {hint}") from None
    if version != FORMAT:
        raise ConfigError(
            f"{path}: format {version!r:.20}, written by runner {content.get('runner')!r:.20}, is unsupported; this version "
            f"reads format {FORMAT}; {hint} of this version"
        )
    if hashlib.sha256(parts[WEIGHTS]).hexdigest() != checksum:
        raise ConfigError(f"{path}: {WEIGHTS} is damaged (checksum mismatch); {hint}")
    try:
        facts = TypeAdapter(ModelFacts).validate_python(content, strict=True)
        # cloned because tensors read in place may be unaligned, and BLAS rounds differently there
        tensors = {name: value.clone() for name, value in load(parts[WEIGHTS]).items()}
        config, card, requirements = (parts[k].decode() for k in (CONFIG, CARD, REQUIREMENTS))
    except ValidationError as error:
        raise ConfigError(f"{path}: {MODEL} is damaged ({first_mistake(error)}); {hint}") from None
    except (SafetensorError, UnicodeDecodeError, ValueError) as error:
        raise ConfigError(f"{path}: damaged ({error}); {hint}") from None
    if forged := set(nonfinite_names(tensors)).difference(facts["nonfinite"]):
        raise ConfigError(
            f"{path}: {min(forged)} in {WEIGHTS} has numbers that are not finite, unlike the exported model; {hint}"
        )
    return ModelFile(facts, tensors, config, plain(card), requirements)


def nonfinite_names(tensors: Tensors) -> list[str]:
    """Names of tensors with NaN or infinities, such as gaps in data and leaves of trees."""
    return [name for name, value in tensors.items() if not bool(value.isfinite().all())]
