"""Users' networks and tables in complete runs, with the expected scores and drops under attack."""

from __future__ import annotations

import math
import random

import pytest

from runner.errors import ConfigError
from runner.execution.execute import run

MOONS = [
    "dataset=two_moons",
    "dataset.n_train=150",
    "dataset.n_test=200",
    "inference=map",
    "inference.lr=0.03",
    "steps=80",
    "attacker=fgsm",
    "attacker.eps=[0,0.3]",
]


def module(name: str = "Victim", **arguments) -> list[str]:
    given = ", ".join(f"{key}: {value}" for key, value in arguments.items())
    return [
        "model=module",
        "plugins=[own_victims]",
        f"model.class_path=own_victims:{name}",
        f"model.arguments={{{given}}}",
    ]


@pytest.mark.parametrize(
    ("outputs", "last", "n_outputs"),
    [
        ("probabilities", "sigmoid", 1),
        ("probabilities", "softmax", 2),
        ("log_probabilities", "log_softmax", 2),
    ],
)
def test_probabilities_equal_logits_in_scores_and_attacks(make_job, outputs, last, n_outputs):
    _, ours = run(
        make_job(
            *MOONS, *module(inputs=2, n_outputs=n_outputs, last=last), f"model.outputs={outputs}"
        )
    )
    _, theirs = run(make_job(*MOONS, *module(inputs=2, n_outputs=n_outputs)))
    for name in (
        "accuracy",
        "nlpp",
        "ece",
        "robust_accuracy",
        "worst_case_accuracy",
        "attack_checks_passed",
    ):
        assert ours[name] == pytest.approx(theirs[name], abs=0.01), name
    assert ours["accuracy"][0] > 0.8
    assert ours["robust_accuracy"][0] < ours["accuracy"][0] - 0.1


@pytest.mark.parametrize("attacked", [True, False])
@pytest.mark.parametrize(("last", "n_outputs"), [("sigmoid", 1), ("softmax", 2), ("sigmoid", 2)])
def test_undeclared_probabilities_are_refused(make_job, attacked, last, n_outputs):
    words = MOONS if attacked else MOONS[:-2]
    with pytest.raises(
        ConfigError, match=r"instead of being logits; set model\.outputs=probabilities"
    ):
        run(make_job(*words, *module(inputs=2, n_outputs=n_outputs, last=last)))


def test_threshold_rule_requires_raw_columns(make_job, tmp_path):
    draw = random.Random(0)
    rows = [(draw.gauss(g, 0.3), draw.gauss(0, 1), g) for g in draw.choices((1, 2, 3), k=300)]
    file = tmp_path / "grades.csv"
    file.write_text("x,z,grade\n" + "".join(f"{x:.4f},{z:.4f},{g}\n" for x, z, g in rows))
    right = sum(min((1, 2, 3), key=lambda g: abs(x - g)) == grade for x, _, grade in rows) / len(
        rows
    )
    table = [
        "dataset=csv",
        f"dataset.path={file}",
        "dataset.labels=classes",
        "dataset.targets=[grade]",
        "dataset.test_share=0.5",
        "inference=fixed",
        *module("Nearest")[:3],
    ]
    (raw,), (standardised,) = (
        run(make_job(*table, *more))[1]["accuracy"] for more in (["dataset.standardise=false"], [])
    )
    assert raw == pytest.approx(right, abs=4 * math.sqrt(right * (1 - right) / 150))
    assert raw > 0.85 > 0.6 > standardised


def test_table_of_pixels_is_read_as_images(make_job, tmp_path):
    draw = random.Random(0)
    rows = "".join(
        ",".join(str(draw.randrange(256)) for _ in range(16)) + f",{i % 2}\n" for i in range(40)
    )
    (tmp_path / "p.csv").write_text(",".join([*(f"p{i}" for i in range(16)), "y"]) + "\n" + rows)
    words = [
        "dataset=csv",
        f"dataset.path={tmp_path / 'p.csv'}",
        "dataset.labels=binary",
        "dataset.standardise=false",
        "dataset.bounds=[0,255]",
        "model=cnn",
        "model.channels=[2]",
        "inference=map",
        "steps=2",
    ]
    _, result = run(
        make_job(*words, "dataset.image_shape=[4,4]", "attacker=fgsm", "attacker.eps=[0,8]")
    )
    assert math.isfinite(result["robust_accuracy"][0])
    with pytest.raises(
        ConfigError,
        match=r"dataset\.bounds: .* one minimum .* scale each to \[0, 1\]",
    ):
        make_job(*words[:4], "dataset.bounds=[[0,255],[0,1]]", *words[5:])
    with pytest.raises(
        ConfigError, match=r"attacker\.eps: 300 .* range of inputs .*; give sizes in these units"
    ):
        run(make_job(*words, "dataset.image_shape=[4,4]", "attacker=fgsm", "attacker.eps=[0,300]"))
