"""A small transformer for texts."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from pydantic import PositiveInt, model_validator
from torch import Tensor, nn
from torch.nn import functional as F

from components.contracts.streams import Rng
from components.maths.compiled.affine import affine
from components.models.networks.classifier import Classifier
from components.models.text.tokens import TextModel, check_vocabulary, mean_over_tokens, read
from components.problems.supervised import Supervised
from components.registry import register


def positions(n: int, dimensions: int, like: Tensor) -> Tensor:
    """sin(t ω_j) and cos(t ω_j), ω_j = 10⁴^(−2j/D), at positions t = 0 … n − 1: [n, D].

    Source: Vaswani et al. (2017), section 3.5."""
    t = torch.arange(n, dtype=torch.float64)[:, None]
    j = torch.arange((dimensions + 1) // 2, dtype=torch.float64)
    angles = t * 1e4 ** (-2 * j / dimensions)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :dimensions].to(like)


class EncoderLayer(nn.Module):
    """h ← norm(h + drop(attention(h))), h ← norm(h + drop(V relu(W h + b) + c))."""

    def __init__(self, network: Classifier, words: int, hidden: int, generator: torch.Generator):
        super().__init__()
        self.into = network.affine(3 * words, words, generator)  # queries, keys, values
        self.out = network.affine(words, words, generator)
        self.up = network.affine(hidden, words, generator)
        self.down = network.affine(words, hidden, generator)
        self.gains = nn.ParameterList([network.constant(words, 1.0) for _ in range(2)])
        self.shifts = nn.ParameterList([network.constant(words, 0.0) for _ in range(2)])

    def attend(self, h: Tensor, there: Tensor, heads: int) -> Tensor:
        """softmax(q kᵀ/√d) v of every head over the positions with a token, h [B, L, D] -> [B, L,
        D]."""
        # each [B, H, L, d]
        q, k, v = affine(h, *self.into).unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=there[:, None, None])
        return affine(mixed.transpose(1, 2).flatten(2), *self.out)

    def forward(
        self, h: Tensor, there: Tensor, heads: int, dropped: Callable[[Tensor], Tensor]
    ) -> Tensor:
        h = self.layer_norm(h + dropped(self.attend(h, there, heads)), 0)
        inner = dropped(torch.relu(affine(h, *self.up)))
        return self.layer_norm(h + dropped(affine(inner, *self.down)), 1)

    def layer_norm(self, h: Tensor, which: int) -> Tensor:
        return F.layer_norm(h, h.shape[-1:], self.gains[which], self.shifts[which])


class TransformerNetwork(Classifier):
    """Word and position vectors, encoder layers, and one affine layer after the mean over a text's
    words."""

    def __init__(self, problem: Supervised, rng: Rng, model: TextTransformer):
        super().__init__(problem, model.prior_std, model.dropout)
        words = model.words
        self.heads = model.heads
        self.words = self.uniform_parameter(
            (check_vocabulary(problem, model.name), words), math.sqrt(3 / words), rng.init
        )  # of length 1
        self.layers = nn.ModuleList(
            EncoderLayer(self, words, model.hidden, rng.init) for _ in range(model.layers)
        )
        self.head = self.affine(self.n_tasks * self.n_classes, words, rng.init)

    def features(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        tokens, mask = read(x)
        D = self.words.shape[1]
        # section 3.4
        h = math.sqrt(D) * F.embedding(tokens, self.words) + positions(
            tokens.shape[1], D, self.words
        )
        h = self.apply_dropout(h, generator)
        for layer in self.layers:
            h = layer(h, mask, self.heads, lambda inner: self.apply_dropout(inner, generator))
        return mean_over_tokens(h, mask)


@register("model", "text_transformer")
class TextTransformer(TextModel):
    """Transformer for texts: encoder layers over word and position vectors, averaged over the
    words.

        h_t = √D e(word t) + position(t),   sine and cosine positions
        h ← norm(h + softmax(q kᵀ/√d) v of every head),   h ← norm(h + V relu(W h + b) + c)      ``layers`` times
        softmax(U mean_t h_t + c)

    Attention and mean are over the positions with a word, so padding has no effect.  In training,
    dropout acts on word vectors, before every sum and inside the hidden layer.  θ ~ N(0, s²)
    independently.  Affine maps are initialised with Glorot's limits, and word vectors with mean
    squared length 1.  x [B, L] are tokens, padded with 0 -> f [B, T, C].

    Raises ConfigMismatchError for inputs that are not tokens.

    Source: Vaswani et al. (2017), sections 3.1 to 3.5; Gallego (2021), section 1.3.4."""

    words: PositiveInt
    hidden: PositiveInt
    layers: PositiveInt
    heads: PositiveInt

    @model_validator(mode="after")
    def _check_head_count(self) -> TextTransformer:
        if self.words % self.heads:
            raise ValueError(
                f"heads: {self.heads} heads do not divide {self.words} dimensions (model.words); use a divisor"
            )
        return self

    def build(self, problem: Supervised, rng: Rng) -> TransformerNetwork:
        return TransformerNetwork(problem, rng, self)
