"""Why scores are divided by √d_k: their variance, and what it does to a softmax."""

import math
from functools import lru_cache
from typing import Any

import numpy as np
import traitlets as t

from course_utils import plots
from course_utils.plots import Figure, Table, format_value, table

from .base import CourseWidget
from .packing import index

QUERIES, KEYS, MOST = 128, 16, 1024
SIZES = tuple(2**s for s in range(int(math.log2(MOST)) + 1))
COLDEST, HOTTEST = -4, 4  # powers of two
SEEDS = 1_000_000
NAMES = ("variance", "largest weight", "entropy (1 = uniform)", "slope a(1-a)")


def normals(seed: int, count: int) -> np.ndarray:
    """(count,) standard normal numbers, an even number of them: those that temperature.js makes of this seed.

    Number t comes of a hash of t and the seed (the finaliser of MurmurHash3, public domain); two hashes make two
    normal numbers (Box and Muller 1958, "A note on the generation of random normal deviates").
    """
    x = np.arange(count, dtype=np.uint32) + np.uint32((seed + 1) * 0x9E3779B9 % 2**32)
    x ^= x >> np.uint32(16)
    x *= np.uint32(0x85EBCA6B)
    x ^= x >> np.uint32(13)
    x *= np.uint32(0xC2B2AE35)
    x ^= x >> np.uint32(16)
    uniform = (x.astype(float) + 0.5) / 2**32
    radius, angle = np.sqrt(-2 * np.log(uniform[0::2])), 2 * np.pi * uniform[1::2]
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).reshape(-1)


def scores_by_size(seed: int, n: int, m: int, most: int) -> np.ndarray:
    """(1 + log2(most), n, m): dot products of n queries, each with m keys of its own, for the sizes 1, 2, 4, … most.

    A smaller size uses the first numbers of the same vectors.
    """
    vectors = normals(seed, n * (m + 1) * most).reshape(n, m + 1, most)
    products = vectors[:, :1] * vectors[:, 1:]
    starts = [0, *(2**s for s in range(int(math.log2(most))))]
    return np.add.reduceat(products, starts, axis=2).cumsum(axis=2).transpose(2, 0, 1)


@lru_cache(maxsize=4)
def _scores(seed: int) -> np.ndarray:
    return scores_by_size(seed, QUERIES, KEYS, MOST)


class Temperature(CourseWidget):
    """Random queries and keys, and the softmax of their scores, divided by √d_k or not.

    128 queries meet 16 keys each; all entries are independent, with mean 0 and variance 1. d_k: a power of two from
    1 to 1,024. scaled: divide by √d_k. temperature: the scores are divided by it as well, a power of two from 1/16 to
    16. seed: which random numbers, 0 to 999,999; the button "Resample" takes the next.

    `w.d_k`, `w.scaled`, `w.log_tau` (the power of two) and `w.seed` are what the learner has chosen.
    Source: Vaswani et al. 2017, "Attention is all you need", section 3.2.1 with footnote 4.
    """

    module = "temperature"
    uses = ("numbers",)

    d_k = t.Int(1).tag(sync=True)
    scaled = t.Bool(False).tag(sync=True)
    log_tau = t.Int(0).tag(sync=True)
    seed = t.Int(0).tag(sync=True)

    def __init__(
        self,
        d_k: int = 64,
        *,
        scaled: bool = False,
        temperature: float = 1.0,
        seed: int = 0,
        title: str = "Why scores are divided by √d_k",
        predict: Any = None,
        prediction: str | None = None,
    ):
        where = "Temperature"
        if isinstance(d_k, bool) or d_k not in SIZES:
            raise ValueError(f"{where}: d_k is {d_k!r}; it must be a power of two from 1 to {MOST}")
        if not isinstance(scaled, bool):
            raise ValueError(f"{where}: scaled is {scaled!r}; it must be True (divide by √d_k) or False")
        allowed = [2.0**power for power in range(COLDEST, HOTTEST + 1)]
        if isinstance(temperature, bool) or temperature not in allowed:
            raise ValueError(f"{where}: temperature is {temperature!r}; it must be a power of two from 1/16 to 16")
        default = (
            f"One query meets {KEYS} random keys. What happens to the largest attention weight when d_k goes from 1 to "
            "1,024 and nothing is divided?",
            [f"it stays near 1/{KEYS}", "it grows towards 1", "it shrinks towards 0"],
        )
        super().__init__(
            title=title,
            predict=predict,
            prediction=prediction,
            default=default,
            d_k=int(d_k),
            scaled=scaled,
            log_tau=int(math.log2(temperature)),
            seed=index(where, "seed", seed, SEEDS, none=False),
        )

    @t.validate("d_k")
    def _a_size(self, proposal: Any) -> int:
        if proposal["value"] not in SIZES:
            raise t.TraitError(f"Temperature: d_k is {proposal['value']}; it must be a power of two from 1 to {MOST}")
        return proposal["value"]

    @t.validate("log_tau")
    def _a_temperature(self, proposal: Any) -> int:
        if not COLDEST <= proposal["value"] <= HOTTEST:
            raise t.TraitError(f"Temperature: log_tau is {proposal['value']}; it must be {COLDEST} to {HOTTEST}")
        return proposal["value"]

    @t.validate("seed")
    def _a_seed(self, proposal: Any) -> int:
        if not 0 <= proposal["value"] < SEEDS:
            raise t.TraitError(f"Temperature: seed is {proposal['value']}; it must be 0 to {SEEDS - 1:,}")
        return proposal["value"]

    def scores(self, d_k: int | None = None) -> np.ndarray:
        """The dot products q·k (128, 16), neither divided by √d_k nor by the temperature."""
        return _scores(self.seed)[SIZES.index(self.d_k if d_k is None else d_k)]

    def measures(self, d_k: int | None = None, scaled: bool | None = None) -> dict[str, float]:
        """What the widget shows for a size: variance of the scores after division, and the means over the queries of
        the largest weight, the entropy (as a share of that of equal weights) and the slope a(1-a)."""
        d_k = self.d_k if d_k is None else d_k
        divide = math.sqrt(d_k) if (self.scaled if scaled is None else scaled) else 1.0
        return measures(self.scores(d_k), divide * 2.0**self.log_tau)

    def describe(self) -> str:
        tau = f", temperature {2.0**self.log_tau:g}" if self.log_tau else ""
        variance = self.scores().var(ddof=1)
        parts = [
            f"Why scores are divided by √d_k. {QUERIES} random queries with {KEYS} keys each, d_k = {self.d_k}{tau}, "
            f"scores {'divided by √d_k' if self.scaled else 'not divided'}, sample {self.seed}. The variance of q·k is "
            f"{_short(variance)}; in theory it is d_k = {self.d_k}."
        ]
        for name, scaled in (("Not divided", False), ("Divided by √d_k", True)):
            told = self.measures(scaled=scaled)
            parts.append(
                f"{name}: "
                + ", ".join(f"{what} {_short(value)}" for what, value in zip(NAMES, told.values(), strict=True))
                + "."
            )
        raw, divided = (self.measures(MOST, scaled)["largest"] for scaled in (False, True))
        parts.append(
            f"At d_k = {MOST} the largest weight is {_short(raw)} without the division, {_short(divided)} with it."
        )
        return " ".join(parts)

    def static(self) -> Figure:
        names = {"divided by √d_k": True, "not divided": False}
        return plots.lines(
            SIZES,
            {name: [self.measures(d, scaled)["largest"] for d in SIZES] for name, scaled in names.items()},
            xlabel="d_k",
            ylabel=f"largest of {KEYS} weights (mean over {QUERIES} queries)",
            title=self.title,
            logx=True,
            ylim=(0, 1.05),
            hline=(1 / KEYS, "equal weights"),
            description=self.describe(),
        )

    def table(self) -> Table:
        """One row for each d_k and each kind of score."""
        rows = [
            (d, name, *self.measures(d, scaled).values())
            for name, scaled in (("not divided", False), ("divided by √d_k", True))
            for d in SIZES
        ]
        caption = f"{self.title}: means over {QUERIES} queries, temperature {2.0**self.log_tau:g}, sample {self.seed}"
        return table(rows, ("d_k", "scores", *NAMES), caption=caption, digits=4)


def measures(scores: np.ndarray, divide: float) -> dict[str, float]:
    """Variance, largest weight, entropy and slope of scores (n, m), divided by `divide` first."""
    scores = scores / divide
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = powers / powers.sum(axis=1, keepdims=True)
    nats = -(weights * np.log(np.where(weights > 0, weights, 1.0))).sum(axis=1)
    return {
        "variance": float(scores.var(ddof=1)),
        "largest": float(weights.max(axis=1).mean()),
        "entropy": float(nats.mean() / math.log(scores.shape[1])),
        "slope": float((weights * (1 - weights)).mean()),
    }


def _short(x: float) -> str:
    return format_value(float(x), 3)
