"""RoBERTa, from weights in a folder."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from components.contracts.streams import Rng
from components.errors import ConfigMismatchError, DataUnavailableError
from components.maths.exponential.global_stream import keep_global_streams
from components.models.networks.classifier import Classifier
from components.models.text.tokens import TextModel, check_vocabulary, read
from components.problems.supervised import Supervised
from components.registry import register

FILES = ("config.json", "model.safetensors")
MARKS = 2  # places that RoBERTa's numbering of them leaves out


class RobertaNetwork(Classifier):
    """The encoder of a folder and, behind its state at the first mark, one affine layer that begins
    anew."""

    def __init__(self, problem: Supervised, rng: Rng, model: Roberta):
        super().__init__(problem, model.prior_std, model.dropout)
        name = model.name
        folder = Path(model.folder)
        missing = [file for file in FILES if not (folder / file).is_file()]
        if missing:
            raise DataUnavailableError(
                f"model.folder: {folder} lacks {' and '.join(missing)}; put RoBERTa's weights there (they are never downloaded)"
            )
        try:
            from transformers import RobertaModel
        except ImportError:
            raise DataUnavailableError(
                f"model={name}: needs the package transformers; pip install 'bayes-runner[roberta]'"
            ) from None
        tokens = check_vocabulary(problem, name) - 1
        like = problem.train.x
        # the package draws parameters missing in the folder from the global stream
        with torch.random.fork_rng(devices=[]):
            encoder = RobertaModel.from_pretrained(
                folder,
                local_files_only=True,
                add_pooling_layer=False,
                hidden_dropout_prob=self.dropout,
            )
        self.encoder = encoder.to(device=like.device, dtype=like.dtype)
        config = encoder.config
        if tokens > config.vocab_size:
            raise ConfigMismatchError(
                f"model={name}: {problem.name} has {tokens} different tokens, the weights know {config.vocab_size}; "
                "set dataset.tokenizer to their folder"
            )
        if like.shape[1] > config.max_position_embeddings - MARKS:
            raise ConfigMismatchError(
                f"dataset.length: texts have up to {like.shape[1]} tokens, the weights of model={name} read "
                f"{config.max_position_embeddings - MARKS}; lower it"
            )
        self.head = self.affine(self.n_tasks * self.n_classes, config.hidden_size, rng.init)

    def features(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        tokens, mask = read(x)
        ids = torch.where(tokens > 0, tokens - 1, self.encoder.config.pad_token_id)
        dropping = generator is not None and self.dropout > 0
        self.encoder.train(dropping)
        # Its dropout draws from the global stream, which is therefore set to a state of ours and
        # then restored.
        with keep_global_streams(x.device, enabled=dropping):
            if generator is not None and dropping:
                torch.manual_seed(
                    int(torch.randint(2**62, (), generator=generator, device=generator.device))
                )
            h = self.encoder(input_ids=ids, attention_mask=mask.long()).last_hidden_state[:, 0]
        return self.apply_dropout(h, generator)


@register("model", "roberta")
class Roberta(TextModel):
    """RoBERTa, fine-tuned: a large transformer that begins at weights in ``folder``.

    All weights learn.

        softmax(V h_0 + c),  h_0 the encoder's state at the mark <s> in front;
        θ ~ N(0, s²) on every parameter

    It needs the package transformers (pip install 'bayes-runner[roberta]') and, in
    ``folder``, config.json and model.safetensors as their publisher has them; nothing is
    ever downloaded. It uses the tokens of its own tokenizer: ``dataset.tokenizer`` names
    the folder of tokenizer.json. Dropout acts in training; with inference=map only where
    inference.dropout=training. Places behind the last token are masked. x [B, L] of tokens
    -> f [B, T, C].

    Raises:
        DataUnavailableError: weights or package are not there.
        ConfigMismatchError: the inputs are no tokens, are of another tokenizer, or are too long.

    Source: Liu et al. (2019), section 3; Gallego (2021), section 1.3.4.
    """

    folder: str

    def build(self, problem: Supervised, rng: Rng) -> RobertaNetwork:
        return RobertaNetwork(problem, rng, self)
