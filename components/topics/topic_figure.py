"""Figures of topics: images if words are pixels, top words otherwise."""

from __future__ import annotations

import math

from components.contracts.posteriors import HoldsTopics
from components.contracts.streams import Rng
from components.figures.latent.latent_images import mosaic, show
from components.figures.style import BLUE, Figures, new_figure
from components.topics.corpus import Corpus
from components.topics.topic_scores import align_topics, coherence, match_topics, top_words

COLUMNS = 5
SHOWN = 20
WORDS = 8  # columns of images and of word lists; maximum number of topics; words of each


def topic_images(problem: Corpus, posterior: HoldsTopics, rng: Rng) -> Figures:
    """Draw each topic as an image, next to the matched true topic, if known.

    Black is 0, and white is the largest probability of the topic.
    """
    shape = problem.image_shape
    topics = align_topics(posterior.topics)
    if shape is None:
        return {}
    panels = [("found", topics)]
    if problem.truth is not None:
        truth = problem.truth.topics[0]
        topic_index, truth_index = match_topics(topics, truth)
        # more topics than true ones
        rest = [k for k in range(len(topics)) if k not in topic_index.tolist()]
        panels = [
            ("truth", truth),
            ("found", topics[[*topic_index[truth_index.argsort()].tolist(), *rest]]),
        ]
    height = 0.7 * math.ceil(max(len(images) for _, images in panels) / COLUMNS) + 0.4
    figure, axes = new_figure(1, len(panels), width=0.75 * COLUMNS, height=height)
    for ax, (title, images) in zip(axes, panels, strict=True):
        image = mosaic(images / images.amax(1, keepdim=True), COLUMNS, shape)
        show(ax, image)
        ax.set_facecolor(BLUE)  # gaps, and a frame of equal width
        ax.set(xlim=(-1.5, image.shape[1] + 0.5), ylim=(image.shape[0] + 0.5, -1.5))
        ax.set_title(title, fontsize=9)
    return {"topics": figure}


def topic_words(problem: Corpus, posterior: HoldsTopics, rng: Rng) -> Figures:
    """Draw the eight most probable words of each of the twenty most coherent topics, in order of
    coherence."""
    if problem.image_shape is not None:
        return {}
    topics = align_topics(posterior.topics)
    score = coherence(topics, problem.train)
    order = score.argsort(descending=True, stable=True)[:SHOWN]
    rows = math.ceil(len(order) / COLUMNS)
    figure, axes = new_figure(rows, COLUMNS, width=2.3, height=1.8)
    for ax in axes[len(order) :]:
        ax.set_visible(False)
    for ax, k in zip(axes, order.tolist(), strict=False):
        word_ids = top_words(topics[k, None], WORDS)[0]
        names = [problem.vocabulary[j] for j in word_ids.tolist()]
        ax.barh(range(len(names)), topics[k, word_ids].cpu(), color=BLUE)
        ax.set_yticks(range(len(names)), names, fontsize=7)
        ax.invert_yaxis()
        ax.locator_params(axis="x", nbins=2)  # three numbers such as 0.0015 would overlap
        ax.tick_params(axis="x", labelsize=7)
        ax.grid(axis="y", visible=False)
        ax.set_title(f"topic {k + 1}   NPMI {float(score[k]):.2f}", fontsize=8)
    figure.supxlabel("probability of the word", fontsize=8)
    return {"topics": figure}
