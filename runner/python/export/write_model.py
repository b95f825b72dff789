"""A fitted model's file from a record, verified before it is written: the model is rebuilt from the
file's content, and must predict the same numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from torch import Tensor
from torch.testing import assert_close

from components.contracts.predictive import GaussianMixture, Predictive, components_of
from components.contracts.problems import Rows
from components.contracts.sequences import FutureCovariates
from components.problems.replicates.side_by_side import SupervisedReplicates
from components.problems.replicates.variants import Variants
from components.problems.supervised import Supervised
from components.problems.unlabelled import Unlabelled
from components.series.forecasting import Forecasting
from components.series.sequence import Sequence
from components.topics.corpus import Corpus
from runner.commands.resume import read_run_config
from runner.errors import ConfigError
from runner.python.export import questions
from runner.python.export.card import write_card
from runner.python.export.described_problem import pack_problem
from runner.python.export.model_file import ModelFacts, ModelFile, nonfinite_names
from runner.python.export.rebuild import rebuild
from runner.python.export.restored import RestoredRun
from runner.record.code import installed_version
from runner.report.compared_record import ComparedRecord

PROBES = 32  # rows that the rebuilt model is compared at
PROBED_TIMES = 5  # of a series where no horizon is known
NAME = "bayes-runner"  # of the distribution
# Packages that a prediction may need; a file pins the versions that it was written with.
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
        run: the posterior.
        record: folder of the run.
        compared: facts and scores of the record.
        path: file to write.

    Returns:
        Content of the file.

    Raises:
        ConfigError: the posterior predicts nothing for new inputs, its model reads files, or the
            rebuilt model would predict other numbers.
    """
    kind = questions.answers_of(run.problem, run.posterior)
    experiment = compared.facts["experiment"]
    if kind is None:
        raise ConfigError(
            f"export: {experiment}: a {type(run.posterior).__name__} of a {run.problem.kind} problem predicts nothing for new "
            "rows; labels, forecasts, topics and clusters can be exported"
        )
    if path.is_dir() or not path.parent.is_dir():
        raise ConfigError(f"export: {path}: no place for a file; name one in a folder that exists")
    config = _portable_config(record / "config.yaml")
    probes = list(_answers(run))
    reason = ""
    for with_rows in (False, True):
        stored = _content(run, config, compared, with_rows)
        card = write_card(stored.facts, record, compared, kind)
        stored = replace(stored, card=card)
        try:
            rebuilt = rebuild(stored, path, str(run.rng.device))
            pairs = zip(probes, _answers(rebuilt, run), strict=True)
            if all(_equal(one, other) for one, other in pairs):
                stored.write(path)
                return stored
            reason = "the rebuilt model predicts other numbers"
        except ConfigError as error:
            reason = str(error)
    raise ConfigError(f"export: {experiment}: cannot be rebuilt without its data: {reason}")


def _content(run: RestoredRun, config: str, compared: ComparedRecord, with_rows: bool) -> ModelFile:
    problem_tensors: dict[str, Tensor] = {}
    described = pack_problem(run.problem, problem_tensors, with_rows)
    state = {name: value.detach().cpu().contiguous() for name, value in run.tensors.items()}
    tensors = state | problem_tensors
    facts: ModelFacts = {
        "runner": installed_version(NAME),
        "run": compared.facts["signature"],
        "experiment": compared.facts["experiment"],
        "data": compared.facts["data"],
        "replicate": run.replicate,
        "step": run.step,
        "holds_training_rows": with_rows
        or not isinstance(run.problem, Supervised | SupervisedReplicates | Unlabelled | Corpus),
        "versions": compared.facts["versions"],
        "problem": described,
        "skeleton": run.metadata["skeleton"],
        "nonfinite": nonfinite_names(tensors),
    }
    return ModelFile(facts, tensors, config, "", pinned_requirements())


def pinned_requirements() -> str:
    """Requirements of a prediction, with the versions that are installed."""
    pins = {name: installed_version(name) for name in (NAME, *PACKAGES)}
    return "".join(f"{name}=={pin.split('+')[0]}\n" for name, pin in pins.items() if pin)


def _portable_config(file: Path) -> str:
    """Config of a record without paths of this machine.

    Raises:
        ConfigError: its model reads a file.
    """
    cfg, experiment, _ = read_run_config(file)
    _refuse_files(cfg)
    if isinstance(path := OmegaConf.select(cfg, "dataset.path"), str):
        cfg.dataset.path = Path(path).name
    fixed = {"data_dir": "data", "output_dir": "outputs", "paper_tables": []}
    for key, value in {**fixed, "tracking": False, "offline": True}.items():
        cfg[key] = value
    return OmegaConf.to_yaml(OmegaConf.merge({"experiment": experiment}, cfg))


def _refuse_files(cfg: DictConfig) -> None:
    from runner.compose.parts import all_parts, known_keys

    config: Any = OmegaConf.to_container(cfg, resolve=True)
    for role in ("model", "inference", "attacker"):
        values = config.get(role)
        for where, inner, part in all_parts(role, values) if values else ():
            reads = known_keys(inner, part, where).reads
            if key := next((key for key in reads if part.get(key) is not None), None):
                raise ConfigError(
                    f"export: {where}.{key}={part[key]}: the model reads this file when it is built, and an exported model "
                    "reads none; export its weights by their own tools"
                )


def _answers(run: RestoredRun, probed: RestoredRun | None = None) -> Iterator[Any]:
    """Answers of a model at test rows of ``probed`` (None: its own)."""
    source = run if probed is None else probed
    problem = source.problem
    kind = questions.answers_of(problem, source.posterior)
    if kind == "labels":
        for replicate, variant in _selections(source):
            split = source.one(replicate, variant)[0]
            assert isinstance(split, Supervised)
            x = split.test.x[:PROBES].clone()
            yield questions.predict_labels(run, x, replicate, variant, "export")
    elif isinstance(problem, Forecasting) and kind == "forecasts":
        yield questions.forecast(run, problem.future.shape[1], problem.beyond)
    elif isinstance(problem, Sequence) and kind == "forecasts":
        # the last regressors and inputs stand in for those of the times ahead
        last = [
            None if value is None else value[-PROBED_TIMES:].nan_to_num()
            for value in (problem.regressors, problem.inputs)
        ]
        horizon = min(PROBED_TIMES, problem.observations.shape[1])
        yield questions.forecast(run, horizon, FutureCovariates(*last))
    elif isinstance(problem, Corpus):
        yield questions.topic_proportions(run, problem.test.part(slice(0, PROBES), 1.0))
    elif isinstance(problem, Unlabelled) and isinstance(problem.test, Rows):
        yield questions.describe_rows(run, problem.test.x[:PROBES].flatten(1))


def _selections(run: RestoredRun) -> Iterator[tuple[int | None, str | None]]:
    """Replicates and variants that were trained side by side."""
    posteriors = run.posterior if isinstance(run.posterior, tuple) else (run.posterior,)
    for r, posterior in enumerate(posteriors):
        replicate = r if isinstance(run.problem, SupervisedReplicates) else None
        names = list(posterior.of) if isinstance(posterior, Variants) else [None]
        yield from ((replicate, name) for name in names)


def _equal(one: Any, other: Any) -> bool:
    """True if two answers are equal to the last bit."""
    try:
        assert_close(_tensors(one), _tensors(other), rtol=0, atol=0, equal_nan=True)
    except AssertionError:
        return False
    return True


def _tensors(answer: Predictive | Tensor | tuple[Tensor | None, ...]) -> list[Tensor]:
    if isinstance(answer, Tensor):
        return [answer]
    if isinstance(answer, GaussianMixture):
        return [answer.mu, answer.v]
    if isinstance(answer, tuple):
        return [part for part in answer if part is not None]
    return [components_of(answer)]
