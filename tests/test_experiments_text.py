"""Training language models on a text, and what the committed runs show."""

import math

import pytest
import torch

from course_utils import experiments, measured
from course_utils.data.text import Characters, python_manual
from course_utils.ngrams import NGram
from course_utils.training import seed_everything
from course_utils.transformer import LanguageModel, honest_nats

ABC = Characters(tuple("abcde"), torch.arange(900) % 5, torch.arange(900, 1000) % 5)


def tiny(vocab: int, **options) -> LanguageModel:
    seed_everything(0)
    return LanguageModel(vocab, 16, n_layers=1, n_heads=2, block_size=16, **options)


def test_a_rule_is_learned_and_read_off_honestly():
    model = tiny(5)
    history = experiments.train_language_model(model, ABC, length=8, steps=60, lr=1e-2)
    assert history.steps == 60
    assert history.final_loss < 0.3 * math.log(5)
    assert honest_nats(model, ABC.windows(8, 10)) < 0.3 * math.log(5)


def test_a_model_that_peeks_looks_better_in_training_than_when_it_is_fed_the_past_alone():
    """Noise: nobody can predict it, but a model that sees it can copy it."""
    noise = torch.randint(5, (3000,), generator=torch.Generator().manual_seed(0))
    text = Characters(tuple("abcde"), noise[:2500], noise[2500:])
    losses = {}
    for name, options in (("causal", {}), ("peeking", {"mask": None})):
        model = tiny(5, **options)
        final = experiments.train_language_model(model, text, length=8, steps=200, lr=1e-2).final_loss
        losses[name] = (final, honest_nats(model, text.windows(8, 40)))
    assert losses["peeking"][0] < 0.6 * math.log(5) < 0.9 * math.log(5) < losses["causal"][0]
    assert losses["peeking"][1] > 0.9 * math.log(5)


def test_every_model_sees_the_same_windows():
    class Spy(LanguageModel):
        def forward(self, idx, caches=None):
            seen.append(idx.clone())
            return super().forward(idx, caches)

    runs = []
    for kind in ("learned", "rope"):
        seen: list[torch.Tensor] = []
        model = Spy(5, 8, n_layers=1, n_heads=2, block_size=8, positions=kind)
        experiments.train_language_model(model, ABC, length=8, steps=3, seed=4)
        runs.append(torch.stack(seen))
    assert runs[0].shape == (3, 32, 8) and torch.equal(*runs)


@pytest.mark.parametrize("positions", LanguageModel.POSITIONS)
def test_loss_by_position_has_a_number_for_each_span_also_beyond_the_training_length(positions):
    spans = ((0, 4), (4, 8), (8, 12), (10, 12))
    nats = experiments.loss_by_position(positions, ABC, spans=spans, length=4, steps=2)
    assert len(nats) == 4 and all(isinstance(value, float) and 0 < value < 20 for value in nats)


def test_loss_by_position_is_the_mean_of_its_spans_and_the_same_again():
    whole, first, second = experiments.loss_by_position("rope", ABC, spans=((0, 8), (0, 2), (2, 8)), length=4, steps=2)
    assert whole == pytest.approx((2 * first + 6 * second) / 8, rel=1e-5)
    torch.rand(3)
    assert experiments.loss_by_position("rope", ABC, spans=((0, 8),), length=4, steps=2) == [whole]


def table(name: str) -> dict:
    if not (measured.FOLDER / f"{name}.json").is_file():
        pytest.skip("not measured yet")
    return measured.load(name)


def test_measured_a_model_that_peeks_is_perfect_in_training_and_useless_in_use():
    masking = table("masking")
    assert max(masking["peeking_training"]) < 0.3
    assert min(masking["peeking"]) - max(masking["masked"]["600"]) >= 0.25


def test_measured_a_causal_model_beats_counting():
    masking = table("masking")
    assert max(masking["masked"]["600"]) < min(masking["ngram"]["3"])
    assert max(masking["masked"]["3000"]) < min(masking["masked"]["600"])


def test_measured_ngrams_are_those_of_the_manual():
    """Counting has no seed. Versions of Python differ a little in their manual."""
    manual = python_manual()
    for n in (1, 3):
        nats = NGram(manual.train, len(manual.alphabet), n).nats(manual.windows(32, 200, seed=1))
        assert nats == pytest.approx(table("masking")["ngram"][str(n)][0], abs=0.2)


def test_measured_alibi_reads_on_beyond_twice_the_training_length_and_sinusoids_do_not():
    positions = table("positions")
    inside = [i for i, (_, end) in enumerate(positions["spans"]) if end <= 32]
    beyond = [i for i, (start, _) in enumerate(positions["spans"]) if start >= 64]
    assert inside and beyond
    for run in positions["nats"]["alibi"]:
        assert max(run[i] for i in beyond) <= max(run[i] for i in inside) + 0.3
    for run in positions["nats"]["sinusoidal"]:
        assert min(run[i] for i in beyond) >= max(run[i] for i in inside) + 0.5
