"""Writing of a fitted model's file from a record.

Before writing, the model is rebuilt from the file's content and must predict the same numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from torch import Tensor
from torch.testing import assert_close

from components.contracts.predictive import GaussianMixture, Predictive, components_of
from runner.commands.resume import read_run_config
from runner.compose.expand import all_parts
from runner.disk.plain_file import read_plain
from runner.errors import ConfigError
from runner.execution.storage.packing import Tensors
from runner.python.export.answers import Answers, TopicAnswers, answers_of
from runner.python.export.described_problem import pack_problem
from runner.python.export.model_file import ModelFacts, ModelFile, nonfinite_names
from runner.python.export.restored import RestoredRun, rebuild
from runner.python.export.series_answers import SeriesAnswers
from runner.record.checks import combine_checks, verdict
from runner.record.code import installed_version
from runner.record.facts import CHOSEN_ROLES, read_config
from runner.report.compare import results_table
from runner.report.compared_record import ComparedRecord
from runner.report.comparison import scores_table
from runner.report.pages import render
from runner.report.scores.cells import FAILED_CHECK_MARK

NAME = "bayes-runner"  # name of the distribution
# packages that predictions may import; a file pins their versions
PACKAGES = (
    "torch",
    "gpytorch",
    "linear_operator",
    "numpy",
    "scipy",
    "scikit-learn",
    "pandas",
    "numba",
    "safetensors",
    "hydra-core",
    "omegaconf",
    "pydantic",
)


def write_model(run: RestoredRun, record: Path, compared: ComparedRecord, path: Path) -> ModelFile:
    """Write the file of a run's posterior.

    Training rows are stored only if predictions at test rows differ without them.

    Args:
        run: the restored run.
        record: folder of the run.
        compared: facts and scores of the record.
        path: file to write.

    Returns:
        Content of the file.

    Raises:
        ConfigError: the posterior makes no predictions for new inputs, the model reads files, or
            the rebuilt model predicts different numbers.
    """
    answers = answers_of(run)
    experiment = compared.facts["experiment"]
    if answers is None:
        raise ConfigError(
            f"export: {experiment}: a {type(run.posterior).__name__} of a {run.problem.kind} problem makes no predictions for "
            "new rows; only predictors of labels, forecasts, topics and clusters can be exported"
        )
    if path.is_dir() or not path.parent.is_dir():
        raise ConfigError(f"export: {path}: cannot be written; give a file in an existing folder")
    config = _portable_config(record / "config.yaml")
    probes = list(answers.probes())
    expected = [_tensors(answers.ask(*probe)) for probe in probes]
    reason = ""
    for with_rows in (False, True):
        stored = _content(run, config, compared, with_rows or isinstance(answers, SeriesAnswers))
        stored = replace(stored, card=write_card(stored.facts, record, compared, answers))
        try:
            rebuilt = answers_of(rebuild(stored, path, str(run.rng.device)))
            assert rebuilt is not None
            again = [_tensors(rebuilt.ask(*probe)) for probe in probes]
            assert_close(expected, again, rtol=0, atol=0, equal_nan=True)
            stored.write(path)
            return stored
        except AssertionError:
            reason = "the rebuilt model predicts different numbers"
        except ConfigError as error:
            reason = str(error)
    raise ConfigError(f"export: {experiment}: cannot be rebuilt without its data: {reason}")


def _content(run: RestoredRun, config: str, compared: ComparedRecord, with_rows: bool) -> ModelFile:
    problem_tensors: Tensors = {}
    described = pack_problem(run.problem, problem_tensors, with_rows)
    state = {name: value.detach().cpu().contiguous() for name, value in run.tensors.items()}
    tensors = state | problem_tensors
    facts: ModelFacts = {
        "runner": installed_version(NAME),
        "run": compared.facts["signature"],
        "experiment": compared.facts["experiment"],
        "data": compared.facts["data"],
        "replicate": run.metadata["replicate"],
        "step": run.metadata["step"],
        "holds_training_rows": with_rows,
        "versions": compared.facts["versions"],
        "problem": described,
        "skeleton": run.metadata["skeleton"],
        "nonfinite": nonfinite_names(tensors),
    }
    pins = {name: installed_version(name) for name in (NAME, *PACKAGES)}
    lines = (f"{name}=={pin.split('+')[0]}\n" for name, pin in pins.items() if pin)
    return ModelFile(facts, tensors, config, "", "".join(lines))


def _portable_config(file: Path) -> str:
    """Config of a record without paths of this machine.

    Raises:
        ConfigError: the model reads a file.
    """
    cfg, experiment, _ = read_run_config(file)
    config: Any = OmegaConf.to_container(cfg, resolve=True)
    for role in ("model", "inference", "attacker"):
        values = config.get(role)
        for where, declared, part in all_parts(role, values) if values else ():
            if key := next((key for key in declared.reads if part.get(key) is not None), None):
                raise ConfigError(
                    f"export: {where}.{key}={part[key]}: the model requires this file, which cannot be exported; export its "
                    "weights with their own tools"
                )
    if isinstance(path := OmegaConf.select(cfg, "dataset.path"), str):
        cfg.dataset.path = Path(path).name
    fixed = {"data_dir": "data", "output_dir": "outputs", "paper_tables": []}
    switches = {"tracking": False, "offline": True}
    return OmegaConf.to_yaml(OmegaConf.merge({"experiment": experiment}, cfg, fixed, switches))


def _tensors(answer: Predictive | Tensor | tuple[Tensor | None, ...]) -> list[Tensor]:
    if isinstance(answer, Tensor):
        return [answer]
    if isinstance(answer, GaussianMixture):
        return [answer.mu, answer.v]
    if isinstance(answer, tuple):
        return [part for part in answer if part is not None]
    return [components_of(answer)]


TEMPLATE = Path(__file__).with_name("card.md.j2")


def write_card(facts: ModelFacts, record: Path, compared: ComparedRecord, answers: Answers) -> str:
    """Model card from the model's facts and the record of its run."""
    path = record / "references.bib"
    citation = read_plain(path).decode("utf-8", "replace").strip() if path.is_file() else ""
    named = None if isinstance(answers, TopicAnswers) else answers.problem.columns
    values = {
        "facts": facts,
        "answers": answers,
        "config": read_config(record),
        "roles": CHOSEN_ROLES,
        "run": compared.facts,
        "scores": results_table(scores_table({"run": compared}))["run"].items(),
        "step": compared.step,
        "checks": combine_checks(compared.facts),
        "verdict": verdict(compared.facts),
        "mark": FAILED_CHECK_MARK,
        "columns": named.columns if named else (),
        "citation": citation.replace("```", "'''"),
    }
    return render(TEMPLATE, values)
