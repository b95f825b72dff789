"""Figures of generative models of images: contents and positions, and no figure if it does not
apply."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from support.runs.configured import component, double
from support.small.unlabelled_problems import real_rows

from components.figures.latent.latent_images import (
    latent_plane,
    mosaic,
    prior_samples,
    reconstructions,
)
from components.posteriors.latent import LatentPosterior
from runner.execution.rng import Streams


@pytest.fixture
def problem():
    return replace(real_rows(n=30), image_shape=(2, 2), test_classes=torch.arange(30) % 3)


def posterior(problem, latent_dim=2):
    model = component("model", "vae", latent_dim=latent_dim, widths=[4])
    return LatentPosterior(model.build(problem, Streams(0)))


def test_mosaics_are_filled_row_by_row():
    draws = mosaic(torch.arange(12.0).view(3, 4), 2, (2, 2))
    nan = np.nan
    expected = [
        [0, 1, nan, 4, 5],
        [2, 3, nan, 6, 7],
        [nan] * 5,
        [8, 9, nan, nan, nan],
        [10, 11, nan, nan, nan],
    ]
    np.testing.assert_array_equal(draws, expected)


def test_reconstructions_are_below_their_images(problem):
    fit = posterior(problem)
    figure = reconstructions(problem, fit, Streams(0))["reconstructions"]
    first_image, repeat = (ax.images[0].get_array()[:2, :2] for ax in figure.axes[:2])
    with torch.no_grad():
        decoded = fit.module.decode(fit.module.encode(problem.test)[0])[0]
    assert_allclose(first_image.filled().ravel(), problem.test.x[0])
    assert_allclose(repeat.filled().ravel(), decoded)
    few = replace(problem, test=problem.test.part(slice(0, 3), 1.0))
    assert len(reconstructions(few, fit, Streams(0))["reconstructions"].axes) == 2


def test_latent_plane_has_expected_corners(problem):
    fit = posterior(problem)
    figure = latent_plane(problem, fit, Streams(0))["latent_plane"]
    plane, scatter = figure.axes
    low = float(torch.special.ndtri(double(0.5 / 15)))
    with torch.no_grad():
        top_left, bottom_right = fit.module.decode(double([[low, -low], [-low, low]]))
    image = plane.images[0].get_array()
    assert_allclose(image[:2, :2].filled().ravel(), top_left)
    assert_allclose(image[-2:, -2:].filled().ravel(), bottom_right)
    assert len(scatter.collections) == 3
    assert sum(len(points.get_offsets()) for points in scatter.collections) == 30


def test_unsuitable_models_draw_no_figure(problem):
    fit = posterior(problem, latent_dim=3)
    assert latent_plane(problem, fit, Streams(0)) == {}
    assert set(prior_samples(problem, fit, Streams(0))) == {"prior_samples"}
    for figure in (reconstructions, prior_samples, latent_plane):
        assert figure(replace(problem, image_shape=None), fit, Streams(0)) == {}
        assert figure(problem, object(), Streams(0)) == {}
