"""A run that is stopped, checkpointed and resumed from fresh objects ends in the same state, noise
and draws: methods that fit networks or encoders, or that sample parameters given data."""

from functools import partial

import pytest
import torch
from support.runs.configured import component, compose_component
from support.small.small_problems import check_resumed, classes, real
from support.small.unlabelled_problems import real_rows

mlp = partial(component, "model", "mlp")
VAE = component("model", "vae", latent_dim=2, widths=[4])
FLAT_VAE = component("model", "vae", latent_dim=2, widths=[], noise=0.3)
LOGISTIC = component("model", "logistic_regression")
LINEAR = component("model", "linear_regression")
SINGLE = partial(real, batch_size=8, dtype=torch.float32)
IMAGES = partial(real_rows, n=12, batch_size=6)
BINARY = partial(classes, n_classes=2)
FEW = partial(real, n=12, n_inputs=2, n_tasks=1)
DROPOUT = mlp(widths=[4], dropout=0.3)
ENCODER = {"widths": [4], "lr": 0.03, "n_samples": 4, "initial_std": 0.5, "bound_samples": 5}
LABELS = {"lr": 0.05, "n_samples": 8, "draws": 100, "widths": [8], "bound_samples": 20}
COLLAPSE = {"chains": 3, "warmup": 6, "collapse": "last_layer"}


JITTERED = {"trajectory": "jittered", "length": 1.2, "step_size": 0.02, "max_steps": 40}
IMPROVE = {"improve_steps": 2, "leapfrog_steps": 2, "lr": 0.02}

# method, its keys, model, problem, number of steps, steps before the stop
RUNS = [
    ("map", {"optimizer": "adam"}, mlp(widths=[8]), SINGLE, 20, 7),
    ("map", {"optimizer": "sgd"}, mlp(widths=[8]), SINGLE, 20, 7),
    (
        "map",
        {"schedule": "cosine", "anneal_steps": 15, "dropout": "training"},
        DROPOUT,
        SINGLE,
        20,
        7,
    ),
    (
        "mc_dropout",
        {"lr": 0.01},
        component("model", "mann2", widths=[4], dropout=0.3),
        SINGLE,
        20,
        7,
    ),
    ("deep_ensemble", {"members": 3, "lr": 0.05}, mlp(widths=[6]), SINGLE, 20, 7),
    ("laplace", {"hyperparameters": "trained"}, mlp(widths=[4]), SINGLE, 12, 5),
    (
        "swag",
        {"burn_in": 5, "every": 3, "rank": 3, "momentum": 0.9},
        mlp(widths=[4]),
        SINGLE,
        20,
        13,
    ),
    ("mean_field_vi", {"lr": 0.01}, component("model", "mbnn3"), SINGLE, 16, 7),
    ("mean_field_vi", {"lr": 0.01}, mlp(), SINGLE, 16, 7),
    ("mean_field_vi", {"lr": 0.01}, component("model", "mann2"), SINGLE, 16, 7),
    ("bb_alpha", {"n_samples": 3, "n_predict": 6}, DROPOUT, SINGLE, 15, 6),
    ("renyi_vi", {"n_samples": 3, "n_predict": 6}, DROPOUT, SINGLE, 15, 6),
    ("mc_dropout_alpha", {"n_samples": 3, "n_predict": 6}, DROPOUT, SINGLE, 15, 6),
    ("bb_alpha", {"n_samples": 4, "draws_from": "cavity"}, mlp(widths=[4]), SINGLE, 6, 3),
    ("pbp", {}, mlp(widths=[4], activation="relu"), partial(real, n=8, n_tasks=1), 3, 1),
    ("hmc_dlgm", {"improve_steps": 2}, VAE, IMAGES, 6, 3),
    ("iwae", {"n_samples": 3}, VAE, IMAGES, 6, 3),
    ("vcd_dlgm", IMPROVE, VAE, IMAGES, 6, 3),
    ("sivi", ENCODER, FLAT_VAE, IMAGES, 12, 7),
    ("uivi", ENCODER, FLAT_VAE, IMAGES, 12, 7),
    ("sivi", LABELS, LOGISTIC, partial(BINARY, batch_size=16), 40, 21),
    ("uivi", LABELS, LOGISTIC, partial(BINARY, batch_size=16), 40, 21),
    ("ksivi", LABELS, LOGISTIC, BINARY, 40, 21),
    (
        "vcd",
        {"lr": 0.05, "n_samples": 8, "draws": 100, "improve_steps": 2},
        LOGISTIC,
        BINARY,
        40,
        21,
    ),
    ("gibbs", {"burn_in": 3, "scan": "random"}, LINEAR, FEW, 20, 11),
    ("random_walk_mh", {"warmup": 8}, LINEAR, FEW, 20, 11),
    ("mala", {"warmup": 14}, LINEAR, FEW, 20, 11),
    ("importance_sampling", {"proposal": "prior"}, LINEAR, FEW, 20, 11),
    ("importance_sampling", {"proposal": "student_t"}, LINEAR, FEW, 20, 11),
    ("hmc", COLLAPSE | JITTERED, mlp(widths=[3, 2]), FEW, 14, 4),
    ("hmc", COLLAPSE | JITTERED, mlp(widths=[3, 2]), FEW, 14, 10),
    ("nuts", COLLAPSE, mlp(widths=[3, 2]), FEW, 14, 4),
    ("nuts", COLLAPSE, mlp(widths=[3, 2]), FEW, 14, 10),
    (
        "vis",
        {"draws": 5, "kernel": "sgld_r", "n_samples": 3},
        LOGISTIC,
        partial(BINARY, batch_size=16),
        9,
        4,
    ),
    ("vis", {"draws": 5, "learn_eta": True}, LOGISTIC, partial(BINARY, batch_size=16), 9, 4),
    ("vis", {"draws": 5, "q0": "point"}, LOGISTIC, partial(BINARY, batch_size=16), 9, 4),
]


@pytest.mark.parametrize(("name", "keys", "model", "problem", "steps", "stop"), RUNS)
def test_resumed_run_is_bit_identical(tmp_path, name, keys, model, problem, steps, stop):
    inference = compose_component("inference", name, **keys)
    check_resumed(inference, model, problem(), tmp_path, steps, stop)
