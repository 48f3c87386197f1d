"""How good is a translation model? Exact match, token accuracy and alignment, by number of dates."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from .data.batches import make_batch
from .data.dates import Corpus, Pair


@dataclass(frozen=True)
class Scores:
    """Each a share between 0 and 1 for every number of dates in the test set.

    exact_match: sentences without any mistake. token_accuracy: right words among all words of the translation.
    alignment: target words whose largest attention weight lies on the gold source word; None without attention.
    """

    exact_match: dict[int, float]
    token_accuracy: dict[int, float]
    alignment: dict[int, float] | None

    def mean_alignment(self, up_to: int) -> float:
        """Mean alignment accuracy over 1 … up_to dates; raises ValueError for a model without attention."""
        if self.alignment is None:
            raise ValueError("alignment: this model has no attention weights to compare with the gold alignment")
        inside = [share for n, share in self.alignment.items() if n <= up_to]
        if not inside:
            raise ValueError(f"up_to: got {up_to}; the shortest sentences measured have {min(self.alignment)} dates")
        return sum(inside) / len(inside)


def alignment_accuracy(weights: Float[Tensor, "B Tt Ts"], pairs: list[Pair]) -> float:
    """Share of target words with a gold source word whose largest weight lies on it."""
    best = weights.argmax(dim=-1)
    hits = [
        int(best[i, t]) == gold
        for i, pair in enumerate(pairs)
        for t, gold in enumerate(pair.alignment)
        if gold is not None
    ]
    return sum(hits) / len(hits)


@torch.no_grad()
def translation_scores(model: nn.Module, corpus: Corpus) -> Scores:
    """Score a model on every test sentence of the corpus; the model is left in eval mode.

    Teacher forcing gives the same exact match as greedy decoding: as long as no word is wrong, what the model is fed
    is what it said itself. Token accuracy is that of teacher forcing.
    """
    model.eval()
    exact, token, aligned = {}, {}, {}
    for n, pairs in corpus.test.items():
        batch = make_batch(pairs, corpus)
        if hasattr(model, "forward_with_weights"):
            logits, weights = model.forward_with_weights(batch)
            aligned[n] = alignment_accuracy(weights, pairs)
        else:
            logits = model(batch)
        right = (logits.argmax(dim=-1) == batch.target) & batch.target_mask
        exact[n] = (right | ~batch.target_mask).all(dim=1).double().mean().item()
        token[n] = right.sum().item() / batch.target_mask.sum().item()
    return Scores(exact, token, aligned or None)
