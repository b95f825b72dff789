"""A recurrent network for texts."""

from __future__ import annotations

import math

import torch
from pydantic import PositiveInt
from torch import Tensor, nn
from torch.nn import functional as F

from components.contracts.streams import Rng
from components.maths.spacing import row_numbers
from components.models.networks.classifier import Classifier
from components.models.text.tokens import TextModel, check_vocabulary, lengths, read
from components.problems.supervised import Supervised
from components.registry import register


class LSTMNetwork(Classifier):
    """Word vectors, layers of LSTM cells, and one affine layer after the state at a text's last
    word."""

    def __init__(self, problem: Supervised, rng: Rng, model: LSTM):
        super().__init__(problem, model.prior_std, model.dropout)
        units = model.units
        self.words = self.uniform_parameter(
            (check_vocabulary(problem, model.name), model.words), math.sqrt(3), rng.init
        )  # of variance 1
        self.cells = nn.ModuleList()
        for layer in range(model.layers):
            inside = model.words if layer == 0 else units
            like = problem.train.x
            # Created without values, to avoid draws from the global stream.
            cell = nn.LSTM(
                inside, units, batch_first=True, device="meta", dtype=like.dtype
            ).to_empty(device=like.device)
            with torch.no_grad():
                for parameter in cell.parameters():
                    parameter.copy_(
                        self.uniform_parameter(tuple(parameter.shape), units**-0.5, rng.init)
                    )
            self.cells.append(cell)
        self.head = self.affine(self.n_tasks * self.n_classes, units, rng.init)

    def features(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        tokens, mask = read(x)
        h = self.apply_dropout(F.embedding(tokens, self.words), generator)  # [B, L, words]
        for cell in self.cells:
            h = self.apply_dropout(cell(h)[0], generator)  # [B, L, units]
        last = lengths(mask) - 1  # later steps have no effect
        return h[row_numbers(h), last]


@register("model", "lstm")
class LSTM(TextModel):
    """LSTM: a recurrent network of several layers over the word vectors of a text, with outputs at
    the last word.

        i, f, o = σ(W x_t + U h_{t−1} + b),  g = tanh(…),  c_t = f ∘ c_{t−1} + i ∘ g,  h_t = o ∘ tanh(c_t)

    x_t of the first layer is the vector of word t (an affine map of its one-hot vector), and of
    later layers h_t of the layer below; softmax(V h_T + c) at the last word T of each text, so that
    padding has no effect.  In training, dropout acts on word vectors and on every layer's h.  θ ~
    N(0, s²) independently.  Initial weights are uniform in ±1/√units, and word vectors have
    variance 1. x [B, L] are tokens, padded with 0 -> f [B, T, C].

    Raises ConfigMismatchError for inputs that are not tokens.

    Source: Hochreiter and Schmidhuber (1997), section 4; Gers et al. (2000) (the gate f); Gallego
    (2021), section 1.3.4."""

    words: PositiveInt
    units: PositiveInt
    layers: PositiveInt

    def build(self, problem: Supervised, rng: Rng) -> LSTMNetwork:
        return LSTMNetwork(problem, rng, self)
