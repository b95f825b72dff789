"""spambase and the simulated corpus as binary supervised problems."""

import gzip

import numpy as np
import pytest
import torch
from support.runs.configured import load_problem
from support.runs.real_files import FOLDER, find_or_skip

from components.datasets.text.spambase import Spambase, simulated_mails


def load(seed=0, **changes):
    return load_problem("spambase", seed=seed, **{"simulated": True} | changes)


def test_simulated_corpus_has_real_shape():
    problem = load()
    assert problem.train.x.shape == (3451, 54)
    assert problem.test.x.shape == (1150, 54)
    assert (problem.bounds, problem.domain, problem.n_classes) == ((0.0, 1.0), "binary", 2)
    x, y = simulated_mails()
    assert set(np.unique(x)) == {0.0, 1.0}
    assert y.mean() == pytest.approx(0.394, abs=5e-4)


def test_replicates_hold_out_other_mails_and_nest_training():
    first = load(0)
    second = load(1)
    assert not torch.equal(first.test.x, second.test.x)
    assert torch.equal(load(0, n_train=100).train.x, first.train.x[:100])
    rows = torch.cat([first.train.x, first.test.x]).sum(0)
    assert torch.equal(rows, torch.from_numpy(simulated_mails()[0]).sum(0))


def test_real_mails_have_the_words_of_the_file():
    (path,) = find_or_skip(Spambase.packed)
    problem = load(data_dir=FOLDER, simulated=False)
    assert problem.name == "spambase"
    with gzip.open(path, "rt") as lines:
        rows = [[float(v) for v in line.split()] for line in lines]
    spam = [row for row in rows if row[-1] == 1]
    y = torch.cat([problem.train.y, problem.test.y])
    assert (len(rows), len(spam), int(y.sum())) == (4601, 1813, 1813)
    x = torch.cat([problem.train.x, problem.test.x])
    assert x.sum(0).tolist() == [sum(row[j] > 0 for row in rows) for j in range(54)]
