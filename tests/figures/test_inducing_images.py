"""Inducing images: their selection, and images before and after training."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from support.runs.configured import normal
from support.small.small_problems import classes, component, real

from components.figures.supervised.inducing_images import inducing_images
from runner.execution.rng import Streams


def build_module(model="mmdgp", **changes):
    problem = replace(
        classes(n=40, n_inputs=16, n_tasks=2), image_shape=(4, 4), task_names=["one", "two"]
    )
    settings = (
        {"inner_dim": 3, "n_inducing": 8, "inducing_by_task": False}
        | ({"specific_dim": 2} if model == "mmdgp" else {})
        | changes
    )
    return problem, component("model", model, **settings).build(problem, Streams(0))


def show_images(problem, module, n_images=3):
    figure = inducing_images(problem, SimpleNamespace(module=module), Streams(0), n_images)[
        "inducing_images"
    ]
    pictures = [torch.as_tensor(ax.images[0].get_array().filled()) for ax in figure.axes]
    titles = [ax.get_title() for ax in figure.axes if ax.get_title()]
    return titles, torch.stack(pictures).reshape(n_images, len(titles), 16), figure


@pytest.mark.parametrize("tied", [True, False])
def test_panels_show_process_with_largest_weight(tied):
    problem, module = build_module(tied=tied)
    with torch.no_grad():
        for layer in module.variational_layers().values():
            layer.inducing += 0.1 * normal(Streams(0).noise, layer.inducing.shape)
        module.top.layer.log_lengthscale[:] = 0.0
        module.top.layer.log_lengthscale[:, 1] = -1.0  # g2
        module.top.layer.log_lengthscale[0, 3] = -1.0  # h1 of task one
        module.top.layer.log_lengthscale[1, 4] = -1.0  # h2 of task two
    titles, pictures, _ = show_images(problem, module)
    assert titles == ["before", "shared", "own: one", "own: two"]
    start = module.initial_inducing_inputs()
    now = module.inducing_inputs()
    # untied specific groups: task one h1, h2, task two h1, h2
    groups = (0, 0, 1) if tied else (1, 0, 3)
    after = [now["shared 1"][groups[0]], now["specific 1"][groups[1]], now["specific 1"][groups[2]]]
    images_before = start["shared 1"][groups[0]]
    assert all(torch.equal(z, images_before) for z in start["specific 1"]), (
        "every layer starts from the same images"
    )
    change = torch.stack([z - images_before for z in after]).square().mean(-1).sqrt().mean(0)
    for row, m in enumerate(change.argsort(descending=True)[:3].tolist()):
        for column, z in enumerate([images_before, *after]):
            assert torch.allclose(pictures[row, column], z[m])


def test_images_have_own_grey_scale_and_change():
    problem, module = build_module()
    with torch.no_grad():
        module.variational_layers()["shared 1"].inducing += 0.5
    _, _, figure = show_images(problem, module)
    for ax in figure.axes[:4]:
        assert ax.images[0].get_clim() == pytest.approx(
            np.quantile(ax.images[0].get_array().filled(), [0.01, 0.99])
        )
    assert [ax.get_xlabel() for ax in figure.axes[1:4]] == [
        "changed by 0.50",
        "changed by 0.00",
        "changed by 0.00",
    ]


@pytest.mark.parametrize(
    ("model", "titles"),
    [("smdgp", ["before", "shared"]), ("idgp", ["before", "own: one", "own: two"])],
)
def test_single_kind_of_process_has_own_titles(model, titles):
    assert show_images(*build_module(model))[0] == titles


def test_separate_initial_images_are_shown_in_pairs():
    problem, module = build_module(inducing_by_task=True)
    with torch.no_grad():
        for layer in module.variational_layers().values():
            layer.inducing += 0.1 * normal(Streams(0).noise, layer.inducing.shape)
    titles, pictures, figure = show_images(problem, module)
    assert titles == [
        "shared\nbefore",
        "after",
        "own: one\nbefore",
        "after",
        "own: two\nbefore",
        "after",
    ]
    changes = (pictures[:, 1::2] - pictures[:, ::2]).square().mean(-1).sqrt()  # [rows, owners]
    assert (changes[:-1] >= changes[1:]).all()
    assert [ax.get_xlabel() for ax in figure.axes[1:6:2]] == [
        f"changed by {c:.2f}" for c in changes[0].tolist()
    ]


def test_deep_models_show_first_level():
    assert show_images(*build_module(depth=2))[0] == ["before", "shared", "own: one", "own: two"]


def test_figure_requires_images_and_inducing_inputs():
    problem, module = build_module()
    assert inducing_images(real(), SimpleNamespace(module=module), Streams(0)) == {}
    assert inducing_images(problem, SimpleNamespace(), Streams(0)) == {}


def test_tasks_may_have_fewer_inducing_images():
    problem, module = build_module(inducing_by_task="dealt")
    titles, _, _ = show_images(problem, module)
    assert len(titles) == 6, "before and after, of the shared and of each task's own"
