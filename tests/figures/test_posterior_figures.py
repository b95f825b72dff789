"""Figures of a sample of draws: their contents, and cases without figures."""

import numpy as np
import pytest
import torch
from scipy.stats import rankdata
from statsmodels.tsa.stattools import acf
from support.runs.configured import F64, draw_normal, generator, load, normal
from support.small.small_problems import real

from components.contracts.predictive import GaussianMixture
from components.figures.samples.autocorrelation import autocorrelation
from components.figures.samples.energy import energy
from components.figures.samples.pairs import pairs
from components.figures.samples.posterior import POSTERIOR_FIGURES
from components.figures.samples.ranks import rank_histogram, ranks
from components.figures.samples.trace import trace
from components.metrics.diagnostics import e_bfmi
from components.posteriors.draws import Draws
from runner.execution.rng import Streams


class Plain:
    def constrain(self, theta):
        return theta

    def predictive(self, theta, x):
        mu = theta[:, :1, None].expand(-1, len(x), 2)
        return GaussianMixture(mu, torch.ones_like(mu))


def sample(chains=4, n=60, size=3, named=True, **more):
    names = [f"theta[{j}]" for j in range(size)] if named else []
    return Draws(draw_normal(chains, n, size), torch.zeros(chains, size), names, Plain(), **more)


def figures(draws, problem=None):
    out = {}
    for figure in POSTERIOR_FIGURES:
        out |= figure(problem, draws)
    return out


def stats(draws):
    g = generator(1)
    shape = draws.draws.shape[:2]
    return {
        "energy": normal(g, shape),
        "diverging": torch.rand(shape, generator=g) < 0.05,
    }


def test_rank_histogram_matches_counts():
    values = np.array([[3.0, 1.0, 1.0, 9.0], [2.0, 7.0, 8.0, 5.0]])
    places = (rankdata(values).reshape(2, 4) - 0.5) / 8
    literal = [np.histogram(row, 4, (0, 1))[0] for row in places]
    np.testing.assert_array_equal(rank_histogram(values, 4), literal)


def test_shifted_chain_leaves_rank_bands():
    draws = sample(chains=4, n=400, size=1)
    values = draws.draws[..., 0].numpy().copy()
    n = 400
    bins = 20
    sd = np.sqrt(n / bins * (1 - 1 / bins) * (1 - 1 / 4))
    assert np.mean(np.abs(rank_histogram(values, bins) - n / bins) > 1.96 * sd) < 0.12
    values[0] += 1
    assert np.mean(np.abs(rank_histogram(values, bins)[0] - n / bins) > 1.96 * sd) > 0.5


def test_rank_counts_have_spread_of_bands():
    many = [rank_histogram(chains.numpy(), 10) for chains in draw_normal(300, 4, 100, seed=3)]
    assert np.std(many) == pytest.approx(np.sqrt(10 * 0.9 * 0.75), rel=0.04)


def test_hamiltonian_sample_has_all_figures():
    draws = sample()
    drawn = figures(sample(stats=stats(draws)))
    assert list(drawn) == ["trace", "ranks", "pairs", "autocorrelation", "energy"]
    assert len(drawn["trace"].axes) == 9
    assert "divergent draws (crosses)" in drawn["pairs"].get_suptitle()
    heights = [bar.get_height() for bar in drawn["energy"].axes[1].patches]
    assert heights == pytest.approx(e_bfmi(stats(draws)["energy"]).tolist())


def test_figures_show_at_most_twelve_parameters():
    draws = figures(sample(size=30))
    assert len(draws["trace"].axes) == 36
    assert len(draws["ranks"].axes) == len(draws["autocorrelation"].axes) == 12
    assert len(draws["pairs"].axes) == 25
    assert draws["ranks"].get_suptitle() == "12 of 30 parameters, those that mix worst"


def test_impossible_figures_are_omitted():
    assert figures(sample(named=False)) == {}
    assert figures(sample(n=0)) == {}
    assert list(figures(sample(n=1))) == ["pairs"]
    assert list(figures(sample(chains=1))) == ["trace", "pairs", "autocorrelation"]
    assert list(figures(sample(size=1))) == ["trace", "ranks", "autocorrelation"]
    still = sample()
    still.draws[:] = still.draws[:, :1]  # chains that never moved
    assert list(figures(still)) == ["trace", "ranks", "pairs", "autocorrelation"]
    assert energy(None, sample()) == {}


def test_weighted_draws_are_resampled():
    draws = sample(chains=1, n=2000, size=2)
    weighted = sample(chains=1, n=2000, size=2, log_weights=-2 * (draws.draws[..., 0] - 1) ** 2)
    drawn = figures(weighted)
    assert list(drawn) == ["pairs"]
    dots = drawn["pairs"].axes[2].collections[0].get_offsets()
    assert dots[:, 0].mean() == pytest.approx(float(weighted.mean[0]), abs=0.03)


def test_known_moments_are_drawn():
    problem, _ = load("mixture_of_gaussians_2d")
    theta = draw_normal(4, 30, 2)
    lines = trace(problem, Draws(theta, theta[:, 0]))["trace"].axes[1].get_lines()
    assert lines[-1].get_label() == "exact"
    assert trace(None, sample())["trace"].axes[1].get_lines()[-1].get_label() == "all chains"


def test_densities_and_supervised_problems_draw_figures():
    density, _ = load("mixture_of_gaussians_2d")
    theta = draw_normal(4, 30, 2)
    usual = {"trace", "ranks", "pairs", "autocorrelation"}
    assert usual <= set(density.draw(Draws(theta, theta[:, 0], ["x1", "x2"]), Streams(0)))
    problem = real()
    assert set(problem.draw(sample(), Streams(0))) == usual
    assert problem.draw(sample(named=False), Streams(0)) == {}


def test_single_figures_are_selected_by_name():
    draws = sample()
    assert list(autocorrelation(None, draws)) == ["autocorrelation"]
    first = autocorrelation(None, draws)["autocorrelation"].axes[0].get_lines()
    literal = acf(draws.draws[0, :, 0].numpy(), nlags=30)
    # after the line at 0 and the two dashed lines
    assert first[3].get_ydata() == pytest.approx(literal, abs=1e-10)
    assert list(pairs(None, draws)) == ["pairs"]
    assert list(ranks(None, draws)) == ["ranks"]


@pytest.mark.parametrize("draw", [trace, ranks, autocorrelation, energy])
@pytest.mark.parametrize("size", [1, 5])
def test_legends_cover_neither_panels_nor_axis_names(draw, size):
    (figure,) = draw(None, sample(size=size, stats=stats(sample()))).values()
    figure.draw_without_rendering()
    legends = figure.legends + [a.get_legend() for a in figure.axes if a.get_legend()]
    assert legends
    for legend in legends:
        box = legend.get_window_extent().padded(-1)
        assert all(map(figure.bbox.padded(1).containsx, (box.x0, box.x1)))
        for axis in figure.axes:
            if axis.axison:
                assert not axis.get_window_extent().overlaps(box)
                texts = [text for text in (axis.title, axis.xaxis.label) if text.get_text()]
                assert not any(text.get_window_extent().overlaps(box) for text in texts)


def test_few_draws_give_few_bars():
    draws = [pairs(None, sample(chains=1, n=n))["pairs"] for n in (27, 1000, 8000)]
    assert [len(figure.axes[0].patches) for figure in draws] == [6, 20, 40]


@pytest.mark.parametrize(("shift", "names"), [(0, ["inside"]), (100, ["outside"])])
def test_rank_legend_lists_drawn_artists(shift, names):
    draws = torch.arange(100, dtype=F64)[torch.randperm(100)]
    theta = torch.stack([draws[:, None], draws[:, None] + 0.5 + shift])  # all ranks, equally often
    figure = ranks(None, Draws(theta, theta[:, 0], ["x"], Plain()))["ranks"]
    assert [text.get_text() for text in figure.legends[0].texts][1:] == names
