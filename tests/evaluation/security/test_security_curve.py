import pytest
import torch
from support.runs.configured import component, threat
from support.small.small_problems import classes, fit_mlp, real, train

from components.attackers.attacked import Attacked
from components.contracts.attackers import Evasion
from components.contracts.progress import listen
from components.evaluation.assess import assess, assess_security
from components.evaluation.security.curves import security_curve
from components.evaluation.security.threat import build_threat
from runner.execution.rng import Streams

FGSM = component("attacker", "fgsm")
THREAT = threat(FGSM, [0.05, 0.1, 0.25])


# Every gradient and every score uses all networks of a prediction.
@pytest.fixture(scope="module", params=[{}, {"n_predict": 20}], ids=["map", "mean_field_vi"])
def victim(request):
    problem = classes(n=200, n_inputs=10)
    name = "mean_field_vi" if request.param else "map"
    posterior, rng = fit_mlp(problem, [16], 150, name, lr=0.01, **request.param)
    problem.evaluation_chunk = 64  # the last chunk is incomplete
    return problem, posterior, rng


def test_curve_starts_at_clean_accuracy_and_falls(victim):
    problem, posterior, rng = victim
    curve = security_curve(problem, posterior, FGSM, THREAT, rng)
    assert curve.verdict, curve.checks
    assert curve.rows["eps"].tolist() == [0.0, 0.05, 0.1, 0.25]
    clean = problem.score(posterior, rng)
    assert curve.rows["accuracy"][0] == clean["accuracy"]
    assert -curve.rows["log_likelihood"][0] == pytest.approx(clean["nlpp"], rel=1e-12)
    assert curve.rows["success_rate"][0] == 0
    assert curve.rows["accuracy"].is_monotonic_decreasing
    assert curve.rows["accuracy"].iloc[-1] < 0.5 < curve.rows["random_accuracy"].iloc[-1]
    # five checks of the curve, eight of the victim, one of the certificate
    assert len(curve.checks) == 13 + ("certified_accuracy" in curve.rows)


def test_curve_rows_match_counts(victim):
    """Accuracy and success rate at ε = 0.1 by counting the predicted classes of the attacked test
    set."""
    problem, posterior, rng = victim
    row = security_curve(problem, posterior, FGSM, THREAT, rng).rows.iloc[2]
    rng = Streams(0)
    rng.attack.set_state(rng.at("attack", 0).get_state())
    parts = zip(problem.test.x.split(64), problem.test.y.split(64), strict=True)
    victim = Attacked(posterior, problem.bounds)
    attacked = torch.cat([FGSM.perturb(victim, x, y, rng, 0.1) for x, y in parts])
    with torch.no_grad():
        clean_costs, after = (
            problem.predictive_at(posterior, x, rng) for x in (problem.test.x, attacked)
        )
    was, now = (p.guess == problem.test.y for p in (clean_costs, after))
    assert row["accuracy"] == now.double().mean()
    assert row["success_rate"] == int((was & ~now).sum()) / int(was.sum())
    entropy = -(after.probs * after.probs.log()).sum(-1).mean()
    assert row["entropy"] == pytest.approx(float(entropy))


def test_evaluation_is_repeatable_and_keeps_streams(victim):
    problem, posterior, rng = victim
    streams_state = rng.state()
    first = assess_security(problem, posterior, FGSM, THREAT, rng)
    assert all(torch.equal(streams_state[name], state) for name, state in rng.state().items())
    torch.rand(5, generator=rng.attack)
    repeat = assess_security(problem, posterior, FGSM, THREAT, rng, figures=False)
    assert repeat.scores == first.scores
    assert repeat.figures == {}


def test_report_has_scores_figures_and_tables(victim):
    problem, posterior, rng = victim
    report = assess(problem, posterior, FGSM, THREAT, rng, figures=True)
    scores = report.scores
    figures = report.figures
    tables = report.tables
    names = ("robust_accuracy", "robust_nlpp", "attack_success")
    assert {f"{name}/eps=0.10" for name in names} <= set(scores)
    assert scores["robust_accuracy"] == scores["robust_accuracy/eps=0.25"]
    under = [v for name, v in scores.items() if name.startswith("robust_accuracy/eps=")]
    assert scores["mean_robust_accuracy"] == pytest.approx(sum(under) / len(under))
    assert scores["attack_checks_passed"] == 1.0
    assert set(figures) == {"security_curve"}
    assert set(tables) == {"security_curve", "attack_checks"}


def test_half_of_shown_images_change_class(victim, monkeypatch):
    problem, posterior, rng = victim
    monkeypatch.setattr(problem, "image_shape", (2, 5))
    state = rng.attack.get_state()
    figures = assess_security(problem, posterior, FGSM, THREAT, rng).figures
    assert torch.equal(rng.attack.get_state(), state)
    titles = [axis.get_title().split(" → ") for axis in figures["attacked_examples"].axes]
    clean = titles[:6]
    attacked = titles[12:18]
    assert [truth for truth, _ in clean] == [truth for truth, _ in attacked]
    changed = [clean_cost != after for clean_cost, after in zip(clean, attacked, strict=True)]
    assert changed == [True] * 3 + [False] * 3
    assert "of the first 60 test images" in figures["attacked_examples"].get_suptitle()
    assert "200 test labels" in figures["security_curve"].axes[0].get_title()


class Broken(Evasion):
    """Attacks that each violate one condition."""

    fault: str

    def perturb(self, victim, x, y, rng, eps):
        if self.fault == "too far":
            return victim.clip(x + 2 * eps)
        if self.fault == "out of bounds":
            return x + eps
        if self.fault == "at zero":
            return victim.clip(x + 0.3)
        gradient = victim.input_gradient(x, y, rng.attack)
        return victim.clip(x + eps * gradient.sign())  # wrong sign: the attack helps the victim


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        ("too far", "no input moves by more than ε"),
        ("out of bounds", "attacked inputs stay in bounds"),
        ("at zero", "an attack of size 0 does not change the accuracy"),
        ("wrong sign", "the attack beats random signs of the same size"),
    ],
)
def test_broken_attacks_fail_their_check(victim, fault, check):
    problem, posterior, rng = victim
    attacker = Broken(name="broken", fault=fault)
    curve = security_curve(problem, posterior, attacker, build_threat(attacker, [0.1, 0.3]), rng)
    assert (check, False) in [outcome[:2] for outcome in curve.checks]


def test_real_labels_are_refused():
    problem = real()
    method = component("inference", "map")
    state, rng = train(method, component("model", "mlp"), problem, 1)
    with pytest.raises(ValueError, match="requires class labels"):
        security_curve(problem, method.posterior(state), FGSM, THREAT, rng)


def test_progress_is_reported_before_each_part(victim):
    problem, posterior, rng = victim
    messages = []
    with listen(lambda *part: messages.append(part)):
        security_curve(problem, posterior, FGSM, THREAT, rng)
    chunks = -(-len(problem.test.x) // 64)
    assert chunks > 1
    assert [done for _, done, _ in messages] == [*range(4 * chunks), 4 * chunks]
    assert {total for _, _, total in messages} == {4 * chunks + 1}
    assert [what for what, _, _ in messages[::chunks]] == [
        "fgsm, ε = 0",
        "fgsm, ε = 0.05",
        "fgsm, ε = 0.1",
        "fgsm, ε = 0.25",
        "checks of the attack",
    ]
