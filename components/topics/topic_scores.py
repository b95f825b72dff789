"""Scores of topics: likelihood of held-out words, distance to the truth, coherence.

Held-out words are halves of documents given their other halves.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from components.contracts.checks import check_shape
from components.contracts.posteriors import HoldsTopics
from components.contracts.problems import Counts
from components.metrics.unlabelled.likelihood_bounds import exp_or_infinity
from components.topics.maths.document_factors import fit_documents

UPDATES = 200
TOLERANCE = 1e-5  # of the factors of held-out documents
TOP = 10  # words of a topic used for its coherence


def proportions(seen: Counts, topics: Tensor, alpha: Tensor) -> Tensor:
    """Compute the mean-field E[π_i | observed words] of each document [B, K] under topics [K, V];
    for empty documents, the prior mean."""
    evenly = alpha + seen.totals[:, None].to(topics.dtype) / len(alpha)
    gamma = fit_documents(
        seen.pairs, topics.T.contiguous(), alpha, evenly, UPDATES, TOLERANCE
    ).gamma
    return gamma / gamma.sum(1, keepdim=True)


def mean_proportions(posterior: HoldsTopics, documents: Counts) -> Tensor:
    """Average ``proportions`` over S sets of topics [B, K], matched to the order of the last
    set."""
    last = posterior.topics[-1]
    total = proportions(documents, last, posterior.alpha)
    for topics in posterior.topics[:-1]:
        indices, ref_indices = match_topics(topics, last)
        total[:, ref_indices] += proportions(documents, topics, posterior.alpha)[:, indices]
    return total / len(posterior.topics)


def completion(posterior: HoldsTopics, seen: Counts, held: Counts) -> Tensor:
    """Compute log p(y) of every pair of the predicted halves given the observed ones [M]: S⁻¹ Σ_s
    Σ_k E[π_ik] B_skv.

    The same for all methods, because only the topics and α of a posterior are used.

    Source: Wallach, Murray, Salakhutdinov and Mimno (2009) (document completion)."""
    total = posterior.topics.new_zeros(len(held.words))
    for topics in posterior.topics:
        share = proportions(seen, topics, posterior.alpha)[held.rows]
        total += (share * topics.T[held.words]).sum(1)
    return (total / len(posterior.topics)).log()


def perplexity(log_prob: Tensor, held: Counts) -> float:
    """Compute exp(−mean log p) over the held-out words, weighted by their counts."""
    n = held.counts.to(log_prob.dtype)
    return exp_or_infinity(-float((n * log_prob).sum() / n.sum()))


def match_topics(topics: Tensor, reference: Tensor) -> tuple[Tensor, Tensor]:
    """Match topics [K, V] with reference topics [K', V]: min(K, K') pairs with the smallest total
    distance."""
    from scipy.optimize import linear_sum_assignment

    cost = 0.5 * torch.cdist(topics, reference, p=1.0)
    indices, ref_indices = linear_sum_assignment(cost.cpu().numpy())
    return torch.from_numpy(indices).to(topics.device), torch.from_numpy(ref_indices).to(
        topics.device
    )


def align_topics(topics: Tensor) -> Tensor:
    """Average S sets of topics [S, K, V] -> [K, V], matched to the order of the last set."""
    last = topics[-1]
    total = last.clone()
    for sample in topics[:-1]:
        indices, ref_indices = match_topics(sample, last)
        total[ref_indices] += sample[indices]
    return total / len(topics)


def distance(topics: Tensor, truth: Tensor) -> float:
    """Mean total variation ½ Σ_v |B_kv − B*_kv| between true topics and their matches; true topics
    without a match count 1."""
    check_shape("the topics", topics, None, truth.shape[1])
    indices, ref_indices = match_topics(topics, truth)
    near = 0.5 * (topics[indices] - truth[ref_indices]).abs().sum(1)
    return float((near.sum() + len(truth) - len(ref_indices)) / len(truth))


def top_words(topics: Tensor, n: int = TOP) -> Tensor:
    """Return the n most probable words of each topic [K, n]; ties go to the first word."""
    return topics.sort(dim=1, descending=True, stable=True)[1][:, :n]


def coherence(topics: Tensor, documents: Counts) -> Tensor:
    """Compute the mean normalised pointwise mutual information of pairs of a topic's ten top words,
    [K], −1 to 1.

    Probabilities are shares of documents with a word, or with both words; pairs without a common
    document count −1, and pairs in every document 0.

    Source: Bouma (2009); Aletras and Stevenson (2013)."""
    top = top_words(topics)
    of_interest = top.unique()
    place = top.new_full((topics.shape[1],), -1)
    place[of_interest] = torch.arange(len(of_interest), device=top.device)
    is_top = place[documents.words] >= 0
    contains = topics.new_zeros(documents.n_rows, len(of_interest))
    contains[documents.rows[is_top], place[documents.words[is_top]]] = 1
    both = contains.T @ contains / max(documents.n_rows, 1)
    single = both.diagonal()
    information = (both / (single[:, None] * single)).log() / -both.log()
    information = torch.where(both > 0, information, -1.0)
    information = torch.where(both >= 1, 0.0, information)
    out = []
    for words in top:
        pair_scores = information[place[words]][:, place[words]]
        upper = torch.ones_like(pair_scores).triu(1) > 0
        out.append(pair_scores[upper].mean() if len(words) > 1 else pair_scores.new_zeros(()))
    return torch.stack(out)


def format_topics(topics: Tensor, vocabulary: Sequence[str]) -> list[str]:
    """Return the top words of each topic in one line."""
    return [" ".join(vocabulary[j] for j in row) for row in top_words(topics).tolist()]
