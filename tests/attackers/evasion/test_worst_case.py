"""Several attacks in one evaluation: the strongest for each row, and a column for each member as in
a separate evaluation."""

import pytest
import torch
from pydantic import ValidationError
from support.runs.configured import component, generator, threat
from support.small.small_victims import Softmax, Spoilt, images, make_honest, verdicts

from components.attackers.attacked import Attacked
from components.contracts.predictive import Categorical
from components.evaluation.assess import assess_security
from components.evaluation.security.checks import curve_checks
from components.evaluation.security.curves import security_curve
from runner.execution.rng import Streams

EPS = [0.0, 0.05, 0.1, 0.2]


def several(*members, **keys):
    return component("attacker", "worst_case", **keys, members=list(members))


def member(name, **keys):
    return component("attacker", name, **keys)


def curve_of(attacker, posterior, problem):
    return security_curve(problem, posterior, attacker, threat(attacker, EPS), Streams(0))


MEMBERS = (member("fgsm"), member("pgd", steps=10), member("square", queries=30))


def test_each_row_keeps_strongest_attack():
    """Literal loop: among the members' results that break the row, the one with the smallest log
    p(y|x')."""
    model = Softmax()
    x, y = images(model, 40)
    victim = Attacked(model, (0.0, 1.0))
    attack = several(*MEMBERS)
    rng = Streams(0)
    ours = attack.perturb(victim, x, y, rng, 0.1)
    rng = Streams(0)
    candidates = [m.perturb(victim, x, y, rng, 0.1) for m in MEMBERS]
    counts = [0] * len(candidates)
    for b in range(len(x)):
        outcomes = []
        for i, z in enumerate(candidates):
            probs = model.predict(z[b : b + 1], generator()).probs[0, 0]
            broken = int(probs.argmax()) != int(y[b])
            outcomes.append((not broken, float(probs[y[b, 0]].log()), i))
        best = min(outcomes)[2]
        counts[best] += 1
        torch.testing.assert_close(ours[b], candidates[best][b], rtol=0, atol=0)
    assert min(counts[1:]) > 0  # every member is needed


def test_member_column_matches_its_own_curve():
    model, problem = make_honest()
    problem.evaluation_chunk = 64
    curve = curve_of(several(*MEMBERS), model, problem)
    assert curve.verdict, curve.checks
    rows = curve.rows
    for m in MEMBERS:
        reference = curve_of(m, model, problem).rows
        assert rows[f"accuracy/{m.name}"].tolist() == reference["accuracy"].tolist()
        assert (
            rows[f"knowledge/{m.name}"].tolist()
            == reference["knowledge"].tolist()
            == [m.knowledge] * len(EPS)
        )
        assert (rows["accuracy"] <= rows[f"accuracy/{m.name}"]).all()
    assert set(rows["knowledge"]) == {"white box"}
    assert set(rows["knowledge/square"]) == {"black box"}


def test_single_member_equals_its_attack():
    model, problem = make_honest()
    reference = curve_of(MEMBERS[1], model, problem).rows
    single = curve_of(several(MEMBERS[1]), model, problem).rows
    assert single[list(reference.columns)].equals(reference)


def test_no_member_is_stronger_with_random_predictions():
    model, problem = make_honest()

    class Wavering:
        def predict(self, x, g):
            f = model.predict(x, g).logits
            return Categorical(f + torch.randn(f.shape, generator=g, dtype=f.dtype))

    rows = curve_of(several(*MEMBERS), Wavering(), problem).rows
    assert (rows["accuracy"] <= rows[[f"accuracy/{m.name}" for m in MEMBERS]].min(axis=1)).all()


def test_weaker_worst_case_fails_check():
    model, problem = make_honest()
    rows = curve_of(several(*MEMBERS), model, problem).rows
    spoilt = rows.assign(accuracy=rows["accuracy/fgsm"] + 0.001)
    for table, expected in ((rows, True), (spoilt, False)):
        checks = {
            check.name: check.passed
            for check in curve_checks(several(*MEMBERS), table, 1.0, [(0, 1)], problem)
        }
        assert checks["the worst case is not weaker than any member"] is expected


def test_member_names_distinguish_duplicates():
    attack = several(
        member("pgd"), member("pgd", criterion="margin"), member("fgsm"), member("fgsm")
    )
    assert list(attack.members_by_label) == [
        "pgd criterion=cross_entropy",
        "pgd criterion=margin",
        "fgsm",
        "fgsm (4)",
    ]


def test_members_keep_their_own_expectation():
    model = Softmax(draws=8)
    x, y = images(model, 30)
    victim = Attacked(model, (0.0, 1.0))
    single = member("pgd", steps=5, expectation="single_draw", random_start=False)
    inside = several(single).perturb(victim, x, y, Streams(0), 0.1)
    reference = single.perturb(Attacked(model, (0.0, 1.0), "single_draw"), x, y, Streams(0), 0.1)
    assert torch.equal(inside, reference)
    assert not torch.equal(inside, single.perturb(victim, x, y, Streams(0), 0.1))


def test_black_box_member_does_not_count_as_white_box():
    """A check detects a victim with a wrong gradient, although a member without gradients breaks
    it."""
    model, problem = make_honest()
    attack = several(member("bim"), member("square", queries=100))
    assert [m.name for m in attack.most_informed_members.members] == ["bim"]
    checks = verdicts(Spoilt(model, "wrong sign"), problem, attacker=attack)
    assert not checks["a white box is not weaker than a black box"]


def test_relentless_disables_early_stopping_of_members():
    assert not several(*MEMBERS).without_early_stop().members[1].stop_when_broken
    assert several(*MEMBERS).members[1].stop_when_broken


def test_worst_case_scores_and_figure_agree_with_curve():
    model, problem = make_honest()
    attacker = several(*MEMBERS)
    assessment = assess_security(problem, model, attacker, threat(attacker, EPS), Streams(0))
    scores = assessment.scores
    figures = assessment.figures
    tables = assessment.tables
    assert scores["robust_accuracy"] == tables["security_curve"]["accuracy"].iloc[-1]
    eps = EPS[-1]
    assert (
        scores[f"robust_accuracy/pgd/eps={eps:.2f}"]
        == tables["security_curve"]["accuracy/pgd"].iloc[-1]
    )
    axis = figures["security_curve"].axes[0]
    labels = [line.get_label() for line in axis.get_lines()]
    assert labels[:4] == ["fgsm", "pgd", "square", "worst case"]


@pytest.mark.parametrize(
    ("members", "keys", "message"),
    [
        (
            [member("fgsm"), member("word_flip")],
            {},
            "members: fgsm attacks continuous inputs, but word_flip attacks binary",
        ),
        (
            [member("fgsm"), member("cw")],
            {},
            "members: cw .*use norm=l2",
        ),
        ([], {}, "at least 1"),
    ],
)
def test_incomparable_members_are_refused(members, keys, message):
    with pytest.raises(ValidationError, match=message):
        several(*members, **keys)
