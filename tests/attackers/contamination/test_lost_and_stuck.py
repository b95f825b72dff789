import pytest
import torch
from support.runs.configured import component, double, load
from support.targets.known_targets import z_score

from components.contracts.sequences import Clean


def contaminate(name, seed=0, replicates=60, n_steps=500, **keys):
    problem, rng = load("wiener_velocity", seed, replicates=replicates, n_steps=n_steps)
    return problem, problem.attack(component("attacker", name, **keys), rng)


def share(struck):
    """z-score of a share with one draw per replicate, because times in bursts are dependent."""
    return struck.double().mean(1)


def run_lengths(struck):
    """Lengths of the runs of ones that end inside the series, of all replicates."""
    lengths = []
    for row in struck.tolist():
        text = "".join("1" if b else "0" for b in row)
        lengths += [len(run) for run in text.strip("1").split("0") if run]
    return double(lengths)


@pytest.mark.parametrize("run_length", [None, 6.0])
def test_missing_has_requested_share_and_run_length(run_length):
    clean, hit = contaminate("missing", probability=0.2, run_length=run_length)
    assert abs(z_score(share(hit.missing), 0.2)) < 4
    assert abs(z_score(run_lengths(hit.missing), 1.25 if run_length is None else run_length)) < 4
    assert torch.equal(hit.observations[~hit.missing], clean.observations[~hit.missing])
    # lost observations count as corrupted and as missing
    assert torch.equal(hit.missing, hit.is_corrupted)
    summary = hit.describe()
    assert summary["missing"].startswith(f"{int(hit.missing.sum()):,} of")
    assert (
        summary["corrupted"] == f"{100 * float(hit.missing.double().mean()):.1f} % of observations"
    )


def test_received_observations_keep_the_clean_distribution():
    _, hit = contaminate("missing", probability=0.4)
    noise = (hit.observations - hit.means)[~hit.missing]
    weights, covariances = hit.attacker.mixture(hit.system.Sigma)
    assert weights.tolist() == [1.0]
    assert torch.equal(covariances[0], hit.system.Sigma)
    assert z_score(noise, 0.0).abs().max() < 4
    assert z_score(noise.square(), hit.system.Sigma.diagonal()).abs().max() < 4


def test_stuck_sensor_repeats_last_value():
    problem, hit = contaminate("sensor_stuck", probability=0.3, run_length=5.0)
    struck = hit.is_corrupted
    assert abs(z_score(share(struck), 0.3)) < 4
    assert abs(z_score(run_lengths(struck), 5.0)) < 4
    y = hit.observations
    assert torch.equal(y[:, 1:][struck[:, 1:]], y[:, :-1][struck[:, 1:]])
    assert torch.equal(y[~struck], problem.observations[~struck])
    assert component("attacker", "sensor_stuck").offers == frozenset()


def test_stuck_sensor_keeps_missing_values(monkeypatch):
    y = double([[[1.0], [float("nan")], [3.0], [float("nan")], [5.0], [6.0]]])
    stuck = torch.tensor([[False, False, True, True, True, False]])
    where = "components.series.attackers.bursts.bursts"
    monkeypatch.setattr(where, lambda *_: stuck)
    _, rng = load("wiener_velocity", n_steps=2)
    out = component("attacker", "sensor_stuck").corrupt(Clean(y), rng)[0, :, 0]
    assert out[[0, 2, 4, 5]].tolist() == [1.0, 1.0, 1.0, 6.0]
    assert out[[1, 3]].isnan().all()
