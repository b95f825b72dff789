"""Content of a run for MLflow: its record becomes name, tags, parameters and points of curves.

All content, including times, is derived only from the record, so that repeated uploads are
identical and stored once.

Times refer to the run's own clock, which starts with the run and pauses while the run is stopped.
The difference of a run's end and start is therefore its computing time, and all lines lie between
them.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from runner.disk.secrets import mask_secrets
from runner.errors import ConfigError, first_line
from runner.record.checks import verdict
from runner.record.facts import Facts, flatten, load_facts, read_config
from runner.record.lines import Line, read_lines
from runner.record.scores import ByReplicate
from runner.statistics.standard_error import mean_se
from runner.tracking.names import cut, key, keys

MAX_NAME_CHARACTERS = 120  # length of the overrides in a name
MAX_VALUE_CHARACTERS = 500
MAX_TAG_CHARACTERS = 5000  # length supported by all servers


class InvalidRecordError(Exception):
    """The record cannot be read or leads out of its folder."""


class Point(NamedTuple):
    """A value of a curve."""

    key: str
    value: float
    stamp: int  # ms since 1970
    step: int


@dataclass(frozen=True)
class RecordContent:
    """Content of a record, read once."""

    facts: Facts
    config: Facts
    lines: list[Line]

    @classmethod
    def of(cls, folder: Path) -> RecordContent:
        """Read a record.

        Raises:
            InvalidRecordError: a file is damaged.
        """
        try:
            facts = load_facts(folder)
            if facts is None:
                raise InvalidRecordError("run.json is damaged")
            config = read_config(folder)
            lines = read_lines(folder)
        except (OSError, ValueError, ConfigError) as error:
            raise InvalidRecordError(f"cannot be read ({first_line(error)})") from None
        content = cls(facts, config, lines)
        try:
            content.tags(), content.parameters, content.run_name, content.result, content.ends
            for line in lines:
                list(content.points([line]))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidRecordError(
                f"run.json, config.yaml or metrics.jsonl is damaged ({error!r})"
            ) from None
        return content

    @property
    def is_looped(self) -> bool:
        """True if replicates are computed sequentially; each is then a nested run in MLflow."""
        return not self.facts["vectorised"] and self.facts["replicates"] > 1

    @property
    def run_name(self) -> str:
        """Overrides, experiment and the beginning of the signature.

        MLflow's columns show the beginning, which must differ between runs of an experiment.
        """
        overrides = self._overrides_text
        if len(overrides) > MAX_NAME_CHARACTERS:
            overrides = f"{overrides[: MAX_NAME_CHARACTERS - 1]}…"
        words = (overrides, self.facts["experiment"], self.facts["signature"][:8])
        return mask_secrets(" ".join(filter(None, words)))

    @property
    def _overrides_text(self) -> str:
        command: Sequence[str] = self.facts.get("command") or []
        if self.facts.get("study") and len(command) == 2 and command[0].endswith("snapshot.yaml"):
            return command[1]  # a run of a study is named by its row and cell
        return " ".join(self.facts.get("overrides") or [])

    def creation_tags(self) -> dict[str, str]:
        """Tags set only when a run is created, because users may change them."""
        command = shlex.join(["runner", *(self.facts.get("command") or [])])
        tags = {
            "mlflow.user": self.facts.get("user") or "unknown",
            "mlflow.source.name": mask_secrets(command),
            "mlflow.source.type": "LOCAL",
            "mlflow.source.git.commit": self.facts["git"].get("sha", ""),
            "mlflow.note.content": self.config.get("description") or "",
        }
        return {
            name: cut(value, MAX_TAG_CHARACTERS, "config.yaml")
            for name, value in tags.items()
            if value
        }

    def tags(self) -> dict[str, str]:
        """Current tags of a run."""
        facts = self.facts
        values = {
            "signature": facts["signature"],
            "data": facts["data"],
            "git": facts["git"].get("sha", ""),
            "study": facts.get("study") or "",
            "smoke": facts["smoke"],
            "state": facts["state"],
            "ended": facts.get("ended") or "",
            "checks": verdict(facts),
            "error": cut(facts.get("error") or "", MAX_VALUE_CHARACTERS, "run.json"),
        }
        values |= {role: name or "" for role, name in facts["choice"].items()}
        return {
            name: cut(mask_secrets(str(value)), MAX_TAG_CHARACTERS, "run.json")
            for name, value in values.items()
        }

    @cached_property
    def parameters(self) -> dict[str, str]:
        """The config by dotted key."""
        items = flatten(self.config)
        values = {key: str(value) for key, value in items if not key.endswith("smoke_overrides")}
        return {
            mlflow_key: cut(mask_secrets(values[name]), MAX_VALUE_CHARACTERS, "config.yaml")
            for name, mlflow_key in keys(values).items()
        }

    @cached_property
    def starts(self) -> int:
        return int(datetime.fromisoformat(self.facts["started"]).timestamp() * 1000)

    @cached_property
    def _before(self) -> ByReplicate:
        """Start of each replicate on the run's clock in seconds: the total of earlier replicates."""
        lasts: ByReplicate = {}
        for line in self.lines if self.is_looped else ():
            lasts[line["replicate"]] = max(line["time"], lasts.get(line["replicate"], 0.0))
        order = sorted(lasts)
        return dict(zip(order, accumulate([0.0, *(lasts[r] for r in order)]), strict=False))

    def _stamp(self, replicate: int, seconds: float) -> int:
        return self.starts + round(1000 * (self._before.get(replicate, 0.0) + seconds))

    @property
    def ends(self) -> int:
        """End on the run's clock; for a killed run, the time of its last line."""
        last = max(
            (self._stamp(line["replicate"], line["time"]) for line in self.lines),
            default=self.starts,
        )
        seconds: float = self.facts["seconds"]
        return max(last, self.starts + round(1000 * seconds))

    def describe_end(self, state: str) -> str:
        """Identifier of an end of the run, which has several if it was resumed."""
        return f"{state} {len(self.lines) if state == 'crashed' else self.facts.get('ended')}"

    def span(self, replicate: int) -> tuple[int, int]:
        """Start and end of a replicate."""
        times = [line["time"] for line in self.lines if line["replicate"] == replicate]
        return self._stamp(replicate, 0.0), self._stamp(replicate, max(times, default=0.0))

    @cached_property
    def _evaluated_scores(self) -> set[str]:
        """Scores evaluated during the run: their curves continue to the final scores."""
        return {
            name for line in self.lines if line["phase"] == "evaluation" for name in line["metrics"]
        }

    @cached_property
    def _keys(self) -> dict[str, str]:
        """MLflow names of all scores, assigned in the order of the record; among scores that appear
        together, those with unchanged names come first."""
        groups = [*(line["metrics"] for line in self.lines), self.facts["result"]]
        names = [
            name for group in groups for name in sorted(group, key=lambda name: key(name) != name)
        ]
        return keys([*names, *(f"{name} SE" for name in self.facts["result"])])

    def points(self, lines: list[Line]) -> Iterator[Point]:
        """Values of the given lines, averaged over replicates computed simultaneously."""
        for line in lines:
            stamp = self._stamp(line["replicate"], line["time"])
            for name, value in line["metrics"].items():
                number = float(sum(value) / len(value) if isinstance(value, list) else value)
                yield Point(f"{line['phase']}/{self._keys[name]}", number, stamp, line["step"])
                if line["phase"] == "final" and name in self._evaluated_scores:
                    yield Point(f"evaluation/{self._keys[name]}", number, stamp, line["step"])

    @property
    def result(self) -> list[Point]:
        """Means over replicates and standard errors."""
        points = []
        for name, values in self.facts["result"].items():
            mean, se = mean_se(values)
            points.append(Point(f"result/{self._keys[name]}", mean, self.ends, 0))
            if len(values) > 1:
                points.append(Point(f"result/{self._keys[f'{name} SE']}", se, self.ends, 0))
        return points
