"""The tables of notebook 06, registered in `make`."""

import math

from .. import experiments, training
from ..data.text import python_manual
from ..transformer import LanguageModel
from . import SEEDS


def depth() -> dict:
    """Language models of 4 to 24 blocks, 150 steps: training nats (null if the run diverged), first loss, gradients."""
    text = python_manual()
    unigram = [experiments.frequency_nats(text, seed=seed) for seed in SEEDS]
    runs = {}
    for n_blocks in (4, 6, 12, 24):
        for variant in experiments.VARIANTS:
            for warmup in (0, 100) if variant in ("pre-norm", "post-norm") else (0,):
                name = f"{n_blocks} {variant}" + (", warm-up" if warmup else "")
                runs[name] = [_deep(text, n_blocks, variant, warmup, seed, name) for seed in SEEDS]
    return {"unigram": unigram, "runs": runs}


def _deep(text, n_blocks: int, variant: str, warmup: int, seed: int, label: str) -> dict:
    model = experiments.deep_model(text, n_blocks, variant, seed=seed)
    norms = experiments.gradient_norms(model, text, seed=seed)
    alike = experiments.likeness(model, text, seed=seed)
    nats, history = experiments.train_deep(model, text, warmup=warmup, seed=seed, label=label)
    return {
        "nats": None if math.isnan(nats) else round(nats, 4),
        "first_loss": round(history.losses[0], 4),
        "gradients": [norms[0], norms[n_blocks // 2], norms[-1]],
        "likeness": [round(alike[0], 4), round(alike[-1], 4)],
    }


def blocks() -> dict:
    """Variants of the block in a language model of two layers of width 32, 400 steps: held-out nats."""
    text = python_manual()
    table = {"nats": {}, "parameters": {}, "load": {}}
    for name, make_block in experiments.BLOCKS.items():
        for balance in (0.01, 0.0) if name == "four experts" else (0.01,):
            full = name if balance else f"{name}, load left alone"
            table["nats"][full] = []
            for seed in SEEDS:
                model, nats = experiments.train_blocks(make_block, text, balance=balance, seed=seed, label=full)
                table["nats"][full].append(nats)
                if load := experiments.expert_load(model, text):
                    table["load"].setdefault(full, []).append(load)
            table["parameters"][full] = training.n_parameters(model)
    return table


def sizes() -> dict:
    """Language models of two layers, 8 to 64 wide, 600 and 1,800 steps: parameters and held-out nats."""
    text = python_manual()
    table = {"parameters": {}, "nats": {}}
    for d in (8, 16, 32, 64):
        for steps in (600, 1800):
            key = f"{d} wide, {steps} steps"
            table["nats"][key] = []
            for seed in SEEDS:
                training.seed_everything(seed)
                model = LanguageModel(len(text.alphabet), d, block_size=32)
                experiments.train_language_model(model, text, steps=steps, seed=seed, label=key)
                table["nats"][key].append(experiments.held_out_nats(model, text))
        table["parameters"][str(d)] = training.n_parameters(model)
    return table


TABLES = {f.__name__: f for f in (depth, blocks, sizes)}
