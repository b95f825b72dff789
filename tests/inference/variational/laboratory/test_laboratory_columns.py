"""Columns of the laboratory's studies: scores are named by the keys that differ between gradients;
overrides of a row can change these keys."""

import pytest

from components.inference.variational.laboratory.gradient_variance import GradientVariance, labels
from runner.compose.compose import compose
from runner.compose.job import prepare
from runner.study.definition import load_study
from runner.study.plan import plan


@pytest.mark.parametrize("name", ["cv_verification", "cv_joint", "cv_objectives"])
def test_every_gradient_has_its_column(name):
    study = load_study(name)
    (spec,) = [table for table in study.tables if table.name == "ratio_10"]
    columns = {metric.split("/")[1] for metric in spec.columns.values()}
    names = set()
    for run in plan(study, []):
        job = prepare(compose([*run.overrides, "offline=true"]))
        laboratory = job.inference
        assert isinstance(laboratory, GradientVariance)
        # the reference of all comparisons
        named = set(labels(laboratory.gradients)) - {"reparam n_samples=1"}
        assert name == "cv_objectives" or named <= columns, (run.row, named - columns)
        names |= named
    assert columns <= names  # every column has a score in some row
