"""Targets: selection by labels of the data, checks before training, and scores."""

import pytest
import torch
from support.runs.configured import component, generator, threat
from support.small.small_problems import train
from support.small.small_victims import F64, make_honest

from components.attackers.attacked import Attacked
from components.attackers.target import find_class_index
from components.errors import ConfigMismatchError
from components.evaluation.security.curves import security_curve
from runner.execution.assembly import load_problem
from runner.execution.rng import Streams


def test_target_is_selected_by_label():
    animals = ["cat", "dog", "emu"]
    assert find_class_index("dog", animals, "pets", "attacker.target") == 1
    assert find_class_index(7, ["5", "6", "7"], "wine", "attacker.target") == 2
    assert find_class_index(-1, ["-1", "1"], "spam", "attacker.target") == 0
    assert find_class_index("2.0", ["1", "2"], "x", "attacker.target") == 1
    assert find_class_index("true", ["False", "True"], "x", "attacker.target") == 1
    with pytest.raises(
        ConfigMismatchError,
        match=r"^attacker.target=chat: .* cat, dog, emu; choose one",
    ):
        find_class_index("chat", animals, "pets", "attacker.target")
    with pytest.raises(ConfigMismatchError, match=r"^attacker.members.1.target=10: .* 0 to 9; "):
        find_class_index(10, [str(i) for i in range(10)], "digits", "attacker.members.1.target")


@pytest.mark.parametrize(
    ("written", "label"),
    [
        (True, "true"),
        (False, "false"),
        (2.5, "2.5"),
        (5, 5),
        (5.0, 5),
        ("ash", "ash"),
        (None, None),
    ],
)
def test_yaml_scalars_are_accepted_as_labels(written, label):
    assert component("attacker", "pgd", target=written).target == label


def test_table_target_is_one_of_its_texts(make_job, tmp_path):
    g = generator()
    lines = ["a,b,kind"]
    for row in torch.rand(60, 2, generator=g).tolist():
        lines.append(f"{row[0]:.4f},{row[1]:.4f},{['ash', 'birch', 'cedar'][int(3 * row[0])]}")
    table = tmp_path / "trees.csv"
    table.write_text("\n".join(lines))
    overrides = [
        "dataset=csv",
        f"dataset.path={table}",
        "dataset.labels=classes",
        "dataset.targets=[kind]",
        "model=mlp",
        "inference=map",
        "steps=3",
        "attacker=pgd",
        "attacker.eps=[0.0,0.5]",
    ]
    job = make_job(*overrides, "attacker.target=cedar")
    problem = load_problem(job, Streams(0))
    assert problem.classes == ["ash", "birch", "cedar"]
    assert job.attacker.with_problem(problem, Streams(0)).target_class == 2
    with pytest.raises(
        ConfigMismatchError,
        match=r"attacker.target=oak: .* has classes ash, birch, cedar; choose one",
    ):
        load_problem(make_job(*overrides, "attacker.target=oak"), Streams(0))
    state, rng = train(job.inference, job.model, problem, 20)
    attacker = job.attacker.with_problem(problem, rng)
    rows = security_curve(
        problem, job.inference.posterior(state), attacker, threat(attacker, [0.5]), rng
    ).rows
    assert "target_reached" in rows


@pytest.mark.parametrize("name", ["pgd", "worst_case"])
def test_target_success_matches_counts(name):
    """Share of rows of other classes that are classified as the target; a worst case keeps any
    success."""
    model, problem = make_honest(n_classes=3)
    keys = (
        {"target": 1}
        if name == "pgd"
        else {"members": [component("attacker", n, target=1) for n in ("fgsm", "pgd")]}
    )
    attacker = component("attacker", name, **keys)
    curve = security_curve(problem, model, attacker, threat(attacker, [0.2]), Streams(0))
    assert curve.verdict, curve.checks
    row = curve.rows.iloc[1]
    y = problem.test.y
    rng = Streams(0)
    rng.attack.set_state(rng.at("attack", 0).get_state())
    x_adv = attacker.with_problem(problem, rng).perturb(
        Attacked(model, problem.bounds), problem.test.x, y, rng, 0.2
    )
    others = [i for i in range(len(y)) if int(y[i]) != 1]
    with torch.no_grad():
        guesses = model.predict(x_adv, generator()).guess
    counted = sum(int(guesses[i]) == 1 for i in others) / len(others)
    if name == "pgd":
        assert row["target_reached"] == counted
    else:
        assert row["target_reached"] >= max(row["target_reached/fgsm"], row["target_reached/pgd"])
    assert 0.2 < counted <= 1
    names = [check.name for check in curve.checks]
    assert "the target is reached more often as ε grows" in names
    assert "accuracy falls as ε grows" not in names


def test_constant_outputs_leave_checks_undecided():
    """A victim with constant outputs: noise is as strong as the gradient, and the loss is
    constant."""
    _, problem = make_honest(n_classes=3)

    class Rock:
        def predict(self, x, g):
            from components.contracts.predictive import Categorical

            one_hot = torch.nn.functional.one_hot(problem.test.y[: len(x), 0], 3).to(F64)
            return Categorical((3 * one_hot - 1 + 0 * x.sum(1, keepdim=True))[None, :, None])

    problem.evaluation_chunk = 1000
    attacker = component("attacker", "fgsm")
    curve = security_curve(problem, Rock(), attacker, threat(attacker, [0.1]), Streams(0))
    checks = {check.name: check for check in curve.checks}
    for name in (
        "noise is weaker than the gradient",
        "the loss rises during the attack",
        "the attack beats random signs of the same size",
    ):
        assert checks[name].passed is None
        assert checks[name].detail.startswith("indistinguishable, ")
    assert checks["the gradient is not zero"].passed is False
