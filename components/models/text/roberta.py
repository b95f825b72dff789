"""RoBERTa with weights from a folder."""

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
MARKS = 2  # positions skipped by RoBERTa's numbering


class RobertaNetwork(Classifier):
    """The encoder from a folder and, after its state at the first mark, one newly initialised
    affine layer."""

    def __init__(self, problem: Supervised, rng: Rng, model: Roberta):
        super().__init__(problem, model.prior_std, model.dropout)
        name = model.name
        folder = Path(model.folder)
        missing = [file for file in FILES if not (folder / file).is_file()]
        if missing:
            raise DataUnavailableError(
                f"model.folder: {folder} lacks {' and '.join(missing)}; copy RoBERTa's weights there (they are not downloaded)"
            )
        try:
            from transformers import RobertaModel
        except ImportError:
            raise DataUnavailableError(
                f"model={name}: requires the package transformers; pip install 'bayes-runner[roberta]'"
            ) from None
        tokens = check_vocabulary(problem, name) - 1
        like = problem.train.x
        # the package draws missing parameters from the global stream
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
                f"model={name}: {problem.name} has {tokens} distinct tokens, but the weights "
                f"support {config.vocab_size}; set dataset.tokenizer to the folder of the weights"
            )
        if like.shape[1] > config.max_position_embeddings - MARKS:
            raise ConfigMismatchError(
                f"dataset.length: texts have up to {like.shape[1]} tokens, but model={name} "
                f"supports {config.max_position_embeddings - MARKS}; lower it"
            )
        self.head = self.affine(self.n_tasks * self.n_classes, config.hidden_size, rng.init)

    def features(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        tokens, mask = read(x)
        ids = torch.where(tokens > 0, tokens - 1, self.encoder.config.pad_token_id)
        dropping = generator is not None and self.dropout > 0
        self.encoder.train(dropping)
        # Its dropout draws from the global stream, which is therefore seeded here and then
        # restored.
        with keep_global_streams(x.device, enabled=dropping):
            if generator is not None and dropping:
                torch.manual_seed(
                    int(torch.randint(2**62, (), generator=generator, device=generator.device))
                )
            h = self.encoder(input_ids=ids, attention_mask=mask.long()).last_hidden_state[:, 0]
        return self.apply_dropout(h, generator)


@register("model", "roberta")
class Roberta(TextModel):
    """Fine-tuned RoBERTa: a large transformer initialised with weights in ``folder``.

    All weights are trained.

        softmax(V h_0 + c),  h_0 the encoder's state at the first mark <s>;
        θ ~ N(0, s²) on every parameter

    It requires the package transformers (pip install 'bayes-runner[roberta]') and, in ``folder``,
    the published config.json and model.safetensors; nothing is downloaded. It uses the tokens of
    its tokenizer: ``dataset.tokenizer`` names the folder of tokenizer.json. Dropout acts in
    training; with inference=map only if inference.dropout=training. Padding is masked. x [B, L] are
    tokens -> f [B, T, C].

    Raises:
        DataUnavailableError: weights or package are missing.
        ConfigMismatchError: the inputs are not tokens, come from another tokenizer, or are too
            long.

    Source: Liu et al. (2019), section 3; Gallego (2021), section 1.3.4.
    """

    folder: str

    def build(self, problem: Supervised, rng: Rng) -> RobertaNetwork:
        return RobertaNetwork(problem, rng, self)
