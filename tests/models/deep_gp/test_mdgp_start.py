"""Initial values of the deep GP family: process names, inducing inputs and linear means."""

import pytest
import torch
from support.runs.configured import F64, build_model, generator, normal
from support.small.small_problems import real
from torch.testing import assert_close

from components.models.deep_gp.build import make_linear_map


def test_process_names_show_what_is_shared():
    problem = real(n_inputs=3)
    module = build_model("mmdgp", problem, inner_dim=2, specific_dim=1, pass_inputs=True)
    assert module.process_names == ["g1", "g2", "h1", "x1", "x2", "x3"]


def test_inducing_inputs_are_at_most_the_rows_or_centroids():
    problem = real(n=12)
    Z = build_model("smdgp", problem).inducing_inputs()["shared 1"]
    assert Z.shape == (10, 12, 3)
    assert torch.equal(Z[0].sort(0).values, problem.train.x.sort(0).values)
    centroids, again = (
        build_model("smdgp", problem, inducing="kmeans", n_inducing=4).inducing_inputs()["shared 1"]
        for _ in range(2)
    )
    assert centroids.shape == (10, 4, 3)
    assert torch.equal(centroids, again)


def test_inducing_inputs_of_a_task_are_its_rows():
    problem = real(n=30, n_tasks=3)
    module = build_model("mmdgp", problem, n_inducing=12, specific_dim=1)
    Z = module.inducing_inputs()["specific 1"]  # [T, M, D]
    for t in range(3):
        inputs = problem.train.x[problem.train.mask[:, t]]
        is_input = (Z[t][:, None] == inputs).all(-1).any(-1)
        assert is_input.sum() == min(12, len(inputs))
        assert len(torch.unique(Z[t], dim=0)) == 12
    same = build_model("mmdgp", problem, n_inducing=12, inducing_by_task=False)
    Z = same.inducing_inputs()
    assert torch.equal(Z["specific 1"], Z["shared 1"][:1].expand(3, -1, -1))


@pytest.mark.parametrize(
    ("name", "shared", "specific", "top"),
    [
        ("mmdgp", [10, 13], [3, 4], [3, 4]),
        ("smdgp", [10, 13], None, [3, 4]),
        ("idgp", None, [3, 4], [3, 4]),
        ("cmdgp", [10, 13], None, [1, 12]),
    ],
)
def test_inducing_inputs_are_distributed_over_tasks(name, shared, specific, top):
    """Every shared process has all 13 inducing inputs, and each of three tasks has 4 that start
    at its own rows."""
    problem = real(n=60, n_tasks=3)
    module = build_model(name, problem, n_inducing=13, inducing_by_task="dealt")
    Z = module.inducing_inputs()
    assert shared is None or list(Z["shared 1"].shape[:2]) == shared
    assert list(module.variational_layers()["top"].inducing.shape[:2]) == top
    if specific is not None:
        # of the first process of each task [T, 4, D]
        groups = Z["specific 1"].unflatten(0, (3, -1))[:, 0]
        assert groups.shape[1] == specific[1]
        for t in range(3):
            rows = problem.train.x[problem.train.mask[:, t]]
            assert (groups[t][:, None] == rows).all(-1).any(-1).all()
    assert torch.isfinite(
        module.elbo(problem.train, module.draw_noise(problem.train, 2, generator(0)))["elbo"]
    )


def test_linear_mean_functions_are_principal_axes():
    g = generator(0)
    x = normal(g, 50, 4) * torch.tensor([0.1, 3.0, 0.2, 1.0])
    assert torch.equal(make_linear_map(x, 4), torch.eye(4, dtype=F64))
    assert torch.equal(make_linear_map(x, 6)[:, :4], torch.eye(4, dtype=F64))
    axes = make_linear_map(x, 2)
    assert_close(axes.T @ axes, torch.eye(2, dtype=F64))
    assert axes[1, 0].abs() > 0.98, "the first axis is the direction of largest variance"
