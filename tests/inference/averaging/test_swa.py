"""SWA: the mean of the weights of plain descent in one network, with recomputed batch
normalisation; resumed runs are bit-identical."""

import copy
import math

import pytest
import torch
from support.small.small_nets import (
    MLP,
    SMALL_LSTM,
    SMALL_TRANSFORMER,
    SMALL_VGG,
    check_resumed,
    images,
    texts,
)
from support.small.small_problems import component, real, train
from torch.nn import functional as F
from torch.testing import assert_close

from components.inference.averaging.path import training_input_batches
from runner.execution.rng import Streams


def swa(**changes):
    return component(
        "inference", "swa", **({"burn_in": 6, "every": 3, "lr": 0.1, "collect_lr": 0.02} | changes)
    )


def way(model, problem, steps, rates):
    """Parameters after every step of descent with momentum by ``torch.optim``, [steps, P]."""
    rng = Streams(0)
    network = model.build(problem, rng)
    by_hand = torch.optim.SGD(network.parameters(), lr=1.0, momentum=0.9)
    out = []
    for t, batch in problem.batches("minibatch", rng, 0, steps):
        by_hand.param_groups[0]["lr"] = rates(t - 1)
        loss = (
            -network.log_prob(network(batch.x, rng.noise), batch).mean()
            + network.penalty() / problem.n
        )
        by_hand.zero_grad()
        loss.backward()
        by_hand.step()
        out.append(torch.cat([p.detach().flatten() for p in network.parameters()]))
    return torch.stack(out)


def cosine(t):
    """0.1 to 0.02 as half a cosine over 6 steps."""
    return 0.02 + 0.04 * (1 + math.cos(math.pi * t / 6)) if t < 6 else 0.02


@pytest.mark.parametrize(
    ("model", "problem"),
    [(MLP, real(batch_size=10)), (SMALL_LSTM, texts()), (SMALL_VGG, images())],
    ids=["mlp", "lstm", "vgg"],
)
def test_mean_matches_points_of_annealed_descent(model, problem):
    points = way(model, problem, 16, cosine)[[8, 11, 14]]  # steps 9, 12, 15
    state, _ = train(swa(), model, problem, 16)
    assert state.n == 3
    assert_close(state.mean, points.mean(0))
    network = swa().posterior(state).network
    assert_close(torch.cat([p.flatten() for p in network.parameters()]), points.mean(0))


def test_rate_is_constant_without_schedule():
    constant = swa(schedule="constant")
    assert [constant.rate_at(t) for t in (0, 5, 6, 20)] == [0.1, 0.1, 0.02, 0.02]


def test_prediction_has_no_dropout_and_keeps_training():
    problem = texts()
    state, rng = train(swa(), SMALL_LSTM, problem, 12)
    posterior = swa().posterior(state)
    x = problem.test.x
    prediction = posterior.predict(x, rng.evaluation)
    assert prediction.logits.shape[0] == 1
    assert torch.equal(prediction.logits, posterior.predict(x, rng.evaluation).logits)
    assert state.network.training
    early = train(swa(), SMALL_LSTM, problem, 5)[0]
    still = copy.deepcopy(early.network).train(False)
    assert_close(swa().posterior(early).predict(x, rng.evaluation).logits[0], still(x))


def test_batch_normalisation_is_recomputed_at_mean():
    """Mean and variance of the first convolution's output, computed directly over the given
    batches."""
    problem = images(n=20)
    state, _ = train(swa(), SMALL_VGG, problem, 16)
    network = swa().posterior(state).network
    # the last four rows do not fill a batch
    kernel = network.kernels[0]
    shown = problem.train.x[:16].view(2, 8, 1, 8, 8)
    h = [
        F.conv2d((x - network.mean) / network.std, kernel, padding=1).transpose(0, 1).flatten(1)
        for x in shown
    ]
    mean, variance = network.statistics()[:2]
    assert_close(mean, torch.stack([part.mean(1) for part in h]).mean(0))
    assert_close(variance, torch.stack([part.var(1) for part in h]).mean(0))
    assert not torch.allclose(mean, state.network.statistics()[0])
    few = swa(norm_rows=8)
    fewer = few.posterior(train(few, SMALL_VGG, problem, 16)[0]).network.statistics()[0]
    assert_close(fewer, h[0].mean(1))


def test_statistics_use_training_batches():
    assert [len(x) for x in training_input_batches(images(n=20), None)] == [8, 8]
    assert [len(x) for x in training_input_batches(images(n=20), 5)] == [5]
    assert [len(x) for x in training_input_batches(images(n=20, batch_size=None), None)] == [20]


@pytest.mark.parametrize(
    "model", [SMALL_VGG, SMALL_LSTM, SMALL_TRANSFORMER], ids=["vgg", "lstm", "transformer"]
)
def test_resumed_run_is_bit_identical(model, tmp_path):
    """The checkpoint includes averages, batch normalisation buffers and the dropout stream."""
    check_resumed(swa(), model, tmp_path)
