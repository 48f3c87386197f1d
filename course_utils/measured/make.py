"""Measure the full tables: python -m course_utils.measured.make [NAME …]. About half an hour for all of them."""

import json
import sys
import time
from collections.abc import Callable

import torch
from torch import nn

from .. import experiments, training
from ..data.dates import date_corpus
from ..data.roles import role_data
from ..data.text import python_manual
from ..encoder_decoder import TransformerTranslator
from ..evaluation import translation_scores
from ..ngrams import NGram
from ..role_models import MultiHeadReader, SingleHeadReader
from ..seq2seq import AttentionTranslator, FixedContextTranslator
from ..transformer import LanguageModel, honest_nats
from . import FOLDER, SEEDS, images, transformer

WIDTH = {TransformerTranslator: "d_model"}  # what the width is called, where it is not d


def _translate(kind: type, seed: int, *, d: int = 64, steps: int = 1000, lr: float = 5e-3) -> dict:
    corpus = date_corpus(seed=seed)
    training.seed_everything(seed)
    model = kind(len(corpus.source_vocab), len(corpus.target_vocab), **{WIDTH.get(kind, "d"): d})
    history = experiments.train_translator(model, corpus, steps=steps, lr=lr, seed=seed, label=f"{kind.__name__} {d}")
    scores = translation_scores(model, corpus)
    return {
        "d": d,
        "steps": steps,
        "seed": seed,
        "parameters": training.n_parameters(model),
        "seconds": round(history.seconds, 1),
        "exact_match": list(scores.exact_match.values()),
        "token_accuracy": [round(share, 4) for share in scores.token_accuracy.values()],
        "alignment": None if scores.alignment is None else round(scores.mean_alignment(up_to=6), 4),
    }


def scoreboard() -> dict:
    """The lines of 01, 02 and 06: the same data, steps and examples, three seeds."""
    lines = []
    for name, lesson, kind, lr in (
        ("fixed context vector", "01", FixedContextTranslator, 5e-3),
        ("additive attention", "02", AttentionTranslator, 5e-3),
        ("Transformer", "06", TransformerTranslator, 3e-3),
    ):
        runs = [_translate(kind, seed, lr=lr) for seed in SEEDS]
        line = {"name": name, "lesson": lesson, "parameters": runs[0]["parameters"], "steps": runs[0]["steps"]}
        line |= {key: [run[key] for run in runs] for key in ("exact_match", "token_accuracy")}
        if runs[0]["alignment"] is not None:
            line["alignment"] = [run["alignment"] for run in runs]
        lines.append(line)
    return {"lines": lines}


def fixed_longer() -> dict:
    """What the fixed context vector reaches when it is wider, or trained longer, than the scoreboard allows."""
    sizes = ((64, 1000), (64, 5000), (128, 1000), (128, 5000), (256, 5000))
    return {"runs": [_translate(FixedContextTranslator, 0, d=d, steps=steps, lr=3e-3) for d, steps in sizes]}


def copy_capacity() -> dict:
    """Exact match by length for vectors of 4 to 64 numbers."""
    return {
        "max_length": 10,
        "exact_match": {
            str(d): [list(experiments.copy_capacity(d, seed=seed).values()) for seed in SEEDS]
            for d in (4, 8, 16, 32, 64)
        },
    }


def recall() -> dict:
    """Accuracy of naming the first of n + 1 symbols after 300 steps."""
    return {
        "distances": [5, 10, 20, 40, 80],
        "accuracy": {
            name: [[experiments.recall_accuracy(layer, n, seed=s) for n in (5, 10, 20, 40, 80)] for s in SEEDS]
            for name, layer in experiments.LAYERS.items()
        },
    }


def scale() -> dict:
    """Steps to 90 % of a dictionary look-up and share of dead examples, scaled and not; keys as values."""
    curves = {
        f"{d} {name}": [experiments.steps_to(experiments.lookup_curve(d, seed=s, **options)) for s in SEEDS]
        for d in (16, 64, 256)
        for name, options in (("scaled", {"scaled": True}), ("not scaled", {"scaled": False}))
    }
    dead = {
        f"{d} {name}": [experiments.dead_share(d, scaled=scaled, seed=s) for s in SEEDS]
        for d in (16, 64, 256, 1024)
        for name, scaled in (("scaled", True), ("not scaled", False))
    }
    tied = {
        f"{d} {name}": [sum(experiments.lookup_curve(d, tied=tied, seed=s)[-20:]) / 20 for s in SEEDS]
        for d in (8, 16, 32, 64)
        for name, tied in (("own values", False), ("keys serve as values", True))
    }
    longer = {
        name: [sum(experiments.lookup_curve(8, tied=tied, seed=s, steps=3000)[-20:]) / 20 for s in SEEDS]
        for name, tied in (("own values", False), ("keys serve as values", True))
    }
    return {"steps_to_90": curves, "dead_share": dead, "accuracy": tied, "accuracy_3000": longer}


def short_sentences() -> dict:
    """One or two dates, 300 steps: where the decoder starts, and the alignment in other languages."""
    starts, languages = {}, {}
    for start in AttentionTranslator.STARTS:
        starts[start] = [_short("hu", seed, start) for seed in SEEDS]
    for language in ("hu", "fil", "it"):
        languages[language] = [_short(language, seed, "linear") for seed in SEEDS]
    return {"start": starts, "language": languages}


def _short(language: str, seed: int, start: str) -> dict:
    corpus = date_corpus(language, n_train=3000, max_dates=2, max_test_dates=2, seed=seed)
    training.seed_everything(seed)
    model = AttentionTranslator(len(corpus.source_vocab), len(corpus.target_vocab), start=start)
    history = experiments.train_translator(
        model,
        corpus,
        steps=300,
        lr=8e-3,
        seed=seed,
        label=f"{language}, {start}",
        measure=lambda m: list(translation_scores(m, corpus).exact_match.values()),
        measure_every=50,
    )
    return {
        "exact_match": history.measured,
        "alignment": round(translation_scores(model, corpus).mean_alignment(up_to=2), 4),
    }


def roles() -> dict:
    """One head, one layer: accuracy of naming the biter, with and without positions."""
    return {
        "biter": {
            kind: [
                experiments.train_role_reader(lambda: SingleHeadReader(positions=kind), seed=s, label=kind)[1]  # noqa: B023
                for s in SEEDS
            ]
            for kind in ("none", "learned", "sinusoidal")
        }
    }


def heads() -> dict:
    """Biter and bitten from one vector: accuracy for both together and for each, by heads, width and layers."""
    shapes = {
        "1 head": {"n_heads": 1},
        "2 heads": {"n_heads": 2},
        "4 heads": {"n_heads": 4},
        "8 heads": {"n_heads": 8},
        "1 head, four times as wide": {"n_heads": 1, "d": 128},
        "the same, a third of the learning rate": {"n_heads": 1, "d": 128},
        "1 head, two layers": {"n_heads": 1, "n_layers": 2},
    }
    accuracy = {}
    for name, shape in shapes.items():
        lr = 3e-3 if "third" in name else 1e-2
        accuracy[name] = [_both_roles(lambda: MultiHeadReader(**shape), seed, lr, name) for seed in range(8)]  # noqa: B023
    return {
        "seeds": 8,
        "accuracy": accuracy,
        "parameters": {name: training.n_parameters(MultiHeadReader(**shape)) for name, shape in shapes.items()},
    }


def _both_roles(make_model: Callable[[], nn.Module], seed: int, lr: float, label: str) -> list[float]:
    """Accuracy for both roles together, the biter, the bitten."""
    model, both = experiments.train_role_reader(make_model, seed=seed, lr=lr, label=label)
    test_set = role_data(seed=seed)[1]
    with torch.no_grad():
        right = (model(test_set.tokens).argmax(dim=-1) == test_set.roles).double().mean(dim=0)
    return [both, *right.tolist()]


SPANS = ((16, 32), (32, 48), (48, 64), (64, 96), (96, 128))


def positions() -> dict:
    """Language models trained on windows of 32 characters: nats a character inside and beyond that length."""
    text = python_manual()
    windows = text.windows(128, 100, seed=1)  # the windows of loss_by_position
    trigram = NGram(text.train, len(text.alphabet), 3)
    return {
        "spans": SPANS,
        # The 3-gram on the very same characters, each from the two before: how hard the text is there.
        "trigram": [trigram.nats(windows[:, start - 1 : end + 1], skip=2) for start, end in SPANS],
        "nats": {
            kind: [experiments.loss_by_position(kind, text, spans=SPANS, seed=s, label=kind) for s in SEEDS]
            for kind in LanguageModel.POSITIONS
        },
    }


def masking() -> dict:
    """n-grams, a causal model and a model without mask on the same held-out windows, nats a character."""
    text = python_manual()
    vocab = len(text.alphabet)
    windows = text.windows(32, 200, seed=1)
    table = {
        "ngram": {str(n): [NGram(text.train, vocab, n).nats(windows)] for n in (1, 2, 3, 4, 5)},
        "masked": {},
        "peeking": [],
        "peeking_training": [],
    }
    for steps in (600, 3000):
        table["masked"][str(steps)] = []
        for seed in SEEDS:
            training.seed_everything(seed)
            model = LanguageModel(vocab, block_size=32)
            experiments.train_language_model(model, text, steps=steps, seed=seed, label=f"causal mask, {steps}")
            table["masked"][str(steps)].append(honest_nats(model, windows))
    for seed in SEEDS:
        training.seed_everything(seed)
        model = LanguageModel(vocab, block_size=32, mask=None)
        history = experiments.train_language_model(model, text, seed=seed, label="no mask")
        table["peeking"].append(honest_nats(model, windows))
        table["peeking_training"].append(history.final_loss)
    return table


TABLES = (
    {
        f.__name__: f
        for f in (
            scoreboard,
            copy_capacity,
            recall,
            scale,
            short_sentences,
            fixed_longer,
            roles,
            heads,
            positions,
            masking,
        )
    }
    | transformer.TABLES
    | images.TABLES
)


def main(names: list[str]) -> int:
    """Measure the tables of these names (all without any) and write them beside this file."""
    unknown = [name for name in names if name not in TABLES]
    if unknown:
        print(f"unknown: {', '.join(unknown)}; there are: {', '.join(TABLES)}")
        return 2
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    for name in names or TABLES:
        started = time.monotonic()
        table = {"made_by": f"python -m course_utils.measured.make {name}", "torch": torch.__version__}
        table |= {"what": TABLES[name].__doc__, **TABLES[name]()}
        text = json.dumps(table, indent=1, ensure_ascii=False)
        (FOLDER / f"{name}.json").write_text(text + "\n", encoding="utf-8", newline="\n")
        print(f"{name}: {time.monotonic() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
