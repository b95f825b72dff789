"""Adversarial posteriors of replicates trained side by side equal the posteriors of separate
runs."""

from types import SimpleNamespace

import pytest
import torch
from support.runs.configured import F64
from support.small.implicit_posteriors import KEYS
from support.small.small_problems import advance, check_resumed, classes, component, real

from components.errors import ConfigMismatchError
from components.problems.replicates.side_by_side import SupervisedReplicates
from components.problems.replicates.variants import Variants
from runner.execution.rng import Streams

PLAIN = {"widths": [4], "activation": "leaky_relu", "noise_init": 0.5, "prior_std": 0.9}
LEARNED = {
    "widths": [4, 3],
    "activation": "leaky_relu",
    "prior_std": "learned",
    "prior_init": 0.3,
    "biases": "point",
}
SHORT = KEYS | {
    "initial_std": 0.4,
    "noise_log_variance": 0.0,
    "lr": 1e-2,
    "discriminator_lr": 1e-2,
    "warmup": 4,
}
STEPS = 12


def splits(made=real, dtype=F64, rows=20):
    """Two separate sets of rows, the second on a different scale."""
    problems_made = [
        made(n=rows, n_inputs=3, batch_size=8, seed=seed, dtype=dtype) for seed in (1, 2)
    ]
    problems_made[1].train.x.mul_(3)
    return problems_made


def train_one_by_one(name, network, problems, **keys):
    """State and information of each replicate, trained one after the other."""
    inference = component("inference", name, **(SHORT | keys))
    ended = []
    for r, problem in enumerate(problems):
        rng = Streams(5, r)
        state = inference.init(network.build(problem, rng), problem, rng)
        state, info = advance(inference, state, problem, rng, 0, STEPS)
        ended.append((inference, state, info, rng))
    return ended


def begin(name, network, problems, **keys):
    rng = Streams(5)
    problem = SupervisedReplicates(problems)
    method = component("inference", name, **(SHORT | keys)).side_by_side()
    models = [network.build(split, rng.of(r)) for r, split in enumerate(problems)]
    return method, method.init(models, problem, rng), problem, rng


def train_together(name, network, problems, **keys):
    method, state, problem, rng = begin(name, network, problems, **keys)
    state, info = advance(method, state, problem, rng, 0, STEPS)
    return method, state, info, problem, rng


CASES = [
    ("aadm", PLAIN, real, F64, {"alpha": 0.5}),
    # rates of aadm_uci
    ("aadm", LEARNED, real, torch.float32, {"alpha": 1.0, "lr": 1e-3, "discriminator_lr": 2e-3}),
    ("aadm", LEARNED, real, F64, {"rows": "own"}),
    ("aadm", PLAIN, classes, F64, {"alpha": 0.5}),
    ("avb", LEARNED, real, F64, {}),
    ("avb", PLAIN, real, F64, {"discriminator": "none"}),
    ("aadm", LEARNED, real, F64, {"discriminator": "prior"}),
]


@pytest.mark.parametrize(("name", "net", "made", "dtype", "keys"), CASES)
def test_replicates_match_sequential_training(name, net, made, dtype, keys):
    network = component("model", "mlp", **net)
    problems = splits(made, dtype)
    close = 1e-12 if dtype == F64 else 1e-6
    method, state, info, problem, rng = train_together(name, network, problems, **keys)
    first = begin(name, network, problems, **keys)[1].q.trainable_parameters()
    assert all(
        float((a - b).detach().abs().max()) > 0.005
        for a, b in zip(first, state.q.trainable_parameters(), strict=True)
    )
    scores = problem.score(method.posterior(state), rng)
    for r, (inference, reference, names, streams) in enumerate(
        train_one_by_one(name, network, problems, **keys)
    ):
        pairs = [(state.q, reference.q), (state.discriminator, reference.discriminator)]
        for stacked, module in pairs[: 1 + (keys.get("discriminator") != "none")]:
            mine = dict(module.named_parameters())
            scale = max(float(p.detach().abs().max()) for p in module.parameters())
            for key, p in stacked.module(r).named_parameters():
                assert (p - mine[key]).detach().abs().max() < close * scale, key
        for word, value in names.items():
            assert info[word].shape == (2,)
            assert float(info[word][r]) == pytest.approx(float(value), rel=1e4 * close)
        separate = problems[r].score(inference.posterior(reference), streams)
        for word, value in separate.items():
            assert float(scores[word][r]) == pytest.approx(
                float(value), rel=1e4 * close, abs=1e-12
            ), word


@pytest.mark.parametrize("keys", [{}, {"discriminator": "none", "rows": "own"}])
def test_several_alphas_match_separate_runs(keys):
    network = component("model", "mlp", **LEARNED)
    problems = splits()
    alphas = [0.01, 0.5, 1.0]
    method, state, info, problem, rng = train_together(
        "aadm", network, problems, alphas=alphas, **keys
    )
    posteriors = method.posterior(state)
    scores = problem.score(posteriors, rng)
    assert [list(posterior.of) for posterior in posteriors] == [["0.01", "0.5", "1"]] * 2
    messages = set()
    for v, alpha in enumerate(alphas):
        for r, (inference, reference, names, streams) in enumerate(
            train_one_by_one("aadm", network, problems, alpha=alpha, **keys)
        ):
            mine = dict(reference.q.named_parameters())
            for name, p in state.q.module(r * len(alphas) + v).named_parameters():
                torch.testing.assert_close(p, mine[name], rtol=1e-10, atol=1e-12)
            for word, value in names.items():
                assert float(info[f"{word}/{alpha:g}"][r]) == pytest.approx(float(value), rel=1e-8)
            for word, value in problems[r].score(inference.posterior(reference), streams).items():
                assert float(scores[f"{word}/{alpha:g}"][r]) == pytest.approx(
                    float(value), rel=1e-8
                ), word
        messages |= {f"{word}/{alpha:g}" for word in names}
    assert info.keys() == messages
    assert (scores["rmse/1"] - scores["rmse/0.01"]).abs().min() > 1e-4
    assert Variants({"a": 1, "b": 2}).each(lambda which: {"f": which}) == {"f/a": 1, "f/b": 2}


def test_each_split_has_own_batches():
    problems = splits()
    rng = Streams(5)
    shown = list(SupervisedReplicates(problems).batches("minibatch", rng, 1, 4))
    for r, problem in enumerate(problems):
        for (step, each), (other, batch) in zip(
            shown, problem.batches("minibatch", Streams(5, r), 1, 4), strict=True
        ):
            assert (step, each.scale, each.n_rows) == (other, batch.scale, batch.n_rows)
            assert torch.equal(each.x[r], batch.x)
            assert torch.equal(each.y[r].nan_to_num(), batch.y.nan_to_num())
            assert torch.equal(each.mask[r], batch.mask)


def test_resumed_run_is_bit_identical(tmp_path):
    network = component("model", "mlp", **LEARNED)
    problems = splits()
    method = component("inference", "aadm", **SHORT).side_by_side()

    def build(problem, rng):
        return [network.build(split, rng.of(r)) for r, split in enumerate(problems)]

    whole = SupervisedReplicates(problems)
    check_resumed(method, SimpleNamespace(build=build), whole, tmp_path, STEPS, 5)


def test_training_sets_of_unequal_size_are_refused():
    problems = [splits(rows=20)[0], splits(rows=21)[1]]
    with pytest.raises(
        ConfigMismatchError,
        match=r"20 × 3 and 21 × 3",
    ):
        SupervisedReplicates(problems)
