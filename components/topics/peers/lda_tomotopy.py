"""Topic model of tomotopy."""

from __future__ import annotations

from pydantic import PositiveInt
from torch import Tensor

from components.contracts.capabilities import TopicModel
from components.contracts.costs.counts import count
from components.contracts.problems import Counts
from components.errors import require_package
from components.registry import register
from components.topics.topic_posterior import PackageTopics


@register("inference", "lda_tomotopy")
class LdaTomotopy(PackageTopics):
    """Collapsed Gibbs sampler of tomotopy, a peer of ``lda_collapsed_gibbs``.

        λ_kv = η + n_kv

    n_kv counts the words v with topic k after the last of ``sweeps`` sweeps, of one chain on one
    thread.  The priors are fixed at those of the model.  λ [K, V].

    Raises ConfigMismatchError if the package is not installed.

    Source: Griffiths and Steyvers (2004); the package."""

    sweeps: PositiveInt

    def fit(self, model: TopicModel, documents: Counts, seed: int) -> Tensor:
        require_package("tomotopy", f"inference={self.name}", "peers")
        import tomotopy

        K = len(model.alpha)
        lda = tomotopy.LDAModel(
            k=K, alpha=float(model.alpha[0]), eta=float(model.eta[0]), seed=seed
        )
        lda.optim_interval = 0  # α is fixed
        words = documents.words.repeat_interleave(documents.counts)
        for document in words.split(documents.totals.tolist()):
            lda.add_doc([str(word) for word in document.tolist()])
        lda.train(self.sweeps, workers=1)
        count(forwards=self.sweeps * documents.n_rows)
        lam = model.eta.repeat(K, 1)
        columns = [int(word) for word in lda.used_vocabs]
        for k in range(K):
            lam[k, columns] = lam.new_tensor(lda.get_topic_word_dist(k, normalize=False))
        return lam
