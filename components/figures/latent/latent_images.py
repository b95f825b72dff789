"""Images from a generative model: reconstructions of held-out images, new images, and the plane of
a latent variable."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from components.contracts.capabilities import Decoder, LatentVariable
from components.contracts.posteriors import module_of
from components.contracts.problems import Rows, UnlabelledProblem
from components.contracts.streams import Rng
from components.figures.style import BLUE, Figures, bare, new_figure, scatter

GAP = 1  # pixels between two images
SHOWN = 20
SAMPLES = 64
INCHES = 0.42  # size of an image
SIDE = 15  # decoded images along each axis of the latent plane


def _image_decoder(problem: UnlabelledProblem, posterior: object) -> Decoder | None:
    """The decoder of a posterior of single-channel images; None for other posteriors."""
    module = module_of(posterior)
    is_grey = problem.image_shape is not None and len(problem.image_shape) == 2
    return module if is_grey and isinstance(module, Decoder) else None


def mosaic(images: Tensor, columns: int, shape: tuple[int, ...] | None) -> Any:
    """Images [n, …] arranged in one array [H, W], row by row, with gaps of NaN, which are drawn
    blank."""
    assert shape is not None, "``_image_decoder`` excludes other rows"
    height, width = shape[-2:]
    rows = math.ceil(len(images) / columns)
    out = torch.full(
        (rows * (height + GAP) - GAP, columns * (width + GAP) - GAP), torch.nan, dtype=torch.float64
    )
    for i, image in enumerate(images.detach().cpu().double().reshape(len(images), height, width)):
        y_offset = (height + GAP) * (i // columns)
        x_offset = (width + GAP) * (i % columns)
        out[y_offset : y_offset + height, x_offset : x_offset + width] = image
    return out.numpy()


def show(ax: Any, image: Any) -> None:
    """Draw a grey mosaic on an axis without ticks."""
    ax.imshow(image, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    bare(ax)


def reconstructions(problem: UnlabelledProblem, posterior: object, rng: Rng) -> Figures:
    """The first 20 held-out images, each above E[x|z] at the mean of q(z|x).

    Nothing is drawn unless rows are single-channel images and the posterior's module is an encoder
    and a decoder."""
    module = _image_decoder(problem, posterior)
    test = problem.test
    if not isinstance(module, LatentVariable) or not isinstance(test, Rows):
        return {}
    few = test.part(slice(0, SHOWN), 1.0)
    with torch.no_grad():
        decoded = module.decode(module.encode(few)[0])
    columns = SHOWN // 2
    pairs = [
        images[start : start + columns] for start in (0, columns) for images in (few.x, decoded)
    ]
    pairs = [images for images in pairs if len(images)]
    height = INCHES + 0.3 / len(pairs)
    figure, axes = new_figure(len(pairs), 1, width=INCHES * columns, height=height)
    for i, (ax, images) in enumerate(zip(axes, pairs, strict=True)):
        show(ax, mosaic(images, len(images), problem.image_shape))
        ax.set_ylabel("image" if i % 2 == 0 else "E[x|z]", fontsize=8)
    figure.suptitle("held-out images, each above its reconstruction", fontsize=9)
    return {"reconstructions": figure}


def prior_samples(problem: UnlabelledProblem, posterior: object, rng: Rng) -> Figures:
    """E[x|z] for 64 draws z from the prior, with the same noise for all models.

    Nothing is drawn unless rows are single-channel images and the posterior's module is a decoder.
    """
    module = _image_decoder(problem, posterior)
    if module is None:
        return {}
    with torch.no_grad():
        images = module.decode(module.sample_latent(SAMPLES, rng.at("evaluation", 0)))
    side = math.isqrt(SAMPLES)
    figure, (ax,) = new_figure(width=INCHES * side, height=INCHES * side + 0.3)
    show(ax, mosaic(images, side, problem.image_shape))
    figure.suptitle("E[x|z] for z from the prior", fontsize=9)
    return {"prior_samples": figure}


def latent_plane(problem: UnlabelledProblem, posterior: object, rng: Rng) -> Figures:
    """Left: E[x|z] at quantiles ½/15, 1½/15, … of the prior along each axis.  Right: the mean of
    q(z|x) of every held-out image, by class if known.

    Nothing is drawn unless z has two dimensions, rows are single-channel images, and the
    posterior's module is an encoder and a decoder.

    Source: Kingma and Welling (2014), Fig 4."""
    module = _image_decoder(problem, posterior)
    test = problem.test
    if not isinstance(module, LatentVariable) or not isinstance(test, Rows):
        return {}
    if module.latent_dim != 2:
        return {}
    from matplotlib import colormaps

    quantiles = torch.special.ndtri((torch.arange(SIDE, dtype=torch.float64) + 0.5) / SIDE).to(
        test.x
    )
    across, down = torch.meshgrid(quantiles, quantiles.flip(0), indexing="xy")
    with torch.no_grad():
        # row by row, from the top
        images = module.decode(torch.stack([across, down], -1).flatten(0, 1))
        means = module.encode(test)[0].cpu()  # [B, 2]
    figure, (left_axis, right_axis) = new_figure(1, 2, width=4.6, height=4.7)
    show(left_axis, mosaic(images, SIDE, problem.image_shape))
    left_axis.set(xlabel=r"quantiles of $z_1$", ylabel=r"quantiles of $z_2$")
    left_axis.set_title("E[x|z]", fontsize=9)
    if problem.test_classes is None:
        scatter(right_axis, means, s=8, linewidth=0, color=BLUE)
    else:
        classes = problem.test_classes.cpu()
        colours = colormaps["tab10"]
        for c in classes.unique().tolist():
            class_means = means[classes == c]
            scatter(right_axis, class_means, s=8, linewidth=0, color=colours(c % 10), label=f"{c}")
        figure.legend(loc="outside right center", fontsize=8, markerscale=1.8, frameon=False)
    reach = max(3.0, 1.05 * float(means.abs().max()))
    right_axis.set(
        xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xlabel=r"$z_1$", ylabel=r"$z_2$"
    )
    right_axis.set_title("means of q(z|x), held-out images", fontsize=9)
    return {"latent_plane": figure}
