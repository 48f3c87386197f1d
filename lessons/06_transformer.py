# Lesson 06. Maintainers: this text is the only hand-written form of the notebook; `course build` makes the rest.

# %% [markdown]
# # 06 Transformer: the block, stacked
#
# **The question.** *What must surround attention so that a deep stack trains?*
#
# Attention lets words exchange information. Models that are useful stack it: 6 layers in 2017, more than a hundred today. Can one simply stack attention? Section 1 tries. What it takes to go deep is a handful of parts, each a few lines long.
# You write them, leave each one out, and watch what breaks. Then you build the two models of the lecture from your own parts: a language model, and a translator for the scoreboard.
#
# **You will be able to**
# - write every part of a pre-norm block and the block itself, and say how post-norm differs;
# - say what residuals, norms, the feed-forward network and warm-up are for, with a measurement for each;
# - put a language model and an encoder–decoder together from blocks, and compute the parameters of a block;
# - name the variants of today's models: RMSNorm, SwiGLU, mixture of experts.
#
# **You should know** notebooks 04 and 05. **Time** about three hours; running every cell takes about a minute and a half.

# %%
try:
    from course_utils import answer, check, claim, question_points, setup, use
except ModuleNotFoundError as missing:
    raise ImportError(
        f"This kernel lacks {missing.name}. Start JupyterLab with `python3 course.py lab` (Windows: `py -3 course.py lab`) "
        "from the course folder, or in an editor, choose the Python in the course's .venv as the kernel."
    ) from None

setup("06")

import itertools
import math

import torch
import torch.nn.functional as F
from IPython.display import display
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from course_utils import experiments, measured, mode, multihead, plots, scoreboard, transformer, widgets
from course_utils.block_variants import MixtureOfExperts
from course_utils.data.batches import make_batch
from course_utils.data.dates import date_corpus
from course_utils.data.text import python_manual
from course_utils.encoder_decoder import TransformerTranslator
from course_utils.evaluation import translation_scores
from course_utils.ngrams import NGram
from course_utils.seq2seq import translate
from course_utils.training import n_parameters, seed_everything

attention = use("MultiHeadAttention")  # your own from notebook 05, where it passed

# %% [markdown]
# ## 1 Twelve layers with nothing around them
#
# The language model of notebook 04 had two blocks, and the blocks came ready-made. Strip them down: let every layer be attention and a small network, one feeding the next, with nothing else. At random initial weights, send a batch of text through twelve of them.

# %% [markdown] question="06.1"
# **Predict.** Compare the vectors of *different* positions of a window. What happens to them from layer to layer, before any training?
#
# - a) they stay as different as they were: every position has its own query
# - b) they become more and more alike, and at the end all positions hold nearly the same vector
# - c) they grow without limit
#
# ### BEGIN ANSWER
# right: b
# a: The queries differ, but with random weights each position takes an average over many others, and averages over the same things resemble each other.
# b: Yes. Each layer averages, and averages of averages have forgotten where they came from. Vectors that are all alike say nothing about the text.
# c: An average is never larger than its largest part. The matrices in between could make it grow; at this initialisation they do not, and size would not tell positions apart anyway.
# ### END ANSWER

# %%
text = python_manual()
vocab = len(text.alphabet)
alone = experiments.deep_model(text, 12, "neither")  # attention and a small network, nothing around them
alike = experiments.likeness(alone, text)
shrunk = experiments.gradient_norms(alone, text)
pre_norm = experiments.deep_model(text, 12, "pre-norm")  # what section 5 will build
display(
    plots.lines(
        list(range(1, 13)),
        {"nothing around them": alike, "for comparison, pre-norm blocks": experiments.likeness(pre_norm, text)},
        xlabel="layer",
        ylabel="mean cosine between positions (1 = all the same)",
        title="Twelve layers at random weights",
        ylim=(0, 1.05),
    )
)
healthy = experiments.gradient_norms(pre_norm, text)
print(
    f"Gradient of the loss in the first layer (norm of one weight matrix): {shrunk[0]:.0e}; "
    f"in a model that trains: {healthy[0]:.0e}."
)
claim("after twelve layers all positions point the same way (cosine above 0.99)", alike[-1] > 0.99)

# %% [markdown]
# **What you see.** The words fade into one (the field calls it **rank collapse**), and the gradient that should repair it arrives as a whisper. Training does not help: after 150 steps such a model still predicts each character by its frequency alone. Keep this picture; sections 5 and 6 repair it.
#
# ## 2 The feed-forward network
#
# Attention computes *weights* in a clever way. Once the weights are given, what it does with the *values* is a weighted mean: a linear map. For given weights, two such layers on top of each other are one linear map again. The lecture calls this "no non-linearity". The cure: after attention, each position goes through a small network, on its own.
#
# $$
# \begin{aligned}
# \operatorname{FFN}(x) &= \max(0,\; x W_1 + b_1)\, W_2 + b_2
# && x \in \mathbb{R}^{d},\; W_1 \in \mathbb{R}^{d \times d_{ff}},\; W_2 \in \mathbb{R}^{d_{ff} \times d}, \quad d_{ff} \approx 4d
# \end{aligned}
# $$
#
# Wide in the middle, so that there is room for many "if this, then add that". (The lecture also calls it **MLP**. Instead of ReLU one often takes **GELU**, a smooth version of it.)


# %% exercise="feed_forward" minutes=5 difficulty=1
def feed_forward(x, W1, b1, W2, b2):
    """Two linear maps with a ReLU between them, on each position alone.

    x (..., d), W1 (d, d_ff), b1 (d_ff), W2 (d_ff, d), b2 (d) -> (..., d).
    """
    ### BEGIN SOLUTION
    return F.relu(x @ W1 + b1) @ W2 + b2
    ### END SOLUTION


# %% [markdown] hints="feed_forward"
# 1. How many linear maps are there, and where is the only place for the ReLU? May the result be negative?
# 2. Each map is `@` with a matrix plus a bias; the ReLU sits on the wide vector in the middle.
# 3. `torch.relu(x @ W1 + b1) @ W2 + b2`

# %%
ffn = use(feed_forward)
seed_everything(0)
d, d_ff = 8, 32
W1, b1, W2, b2 = torch.randn(d, d_ff), torch.randn(d_ff), torch.randn(d_ff, d), torch.randn(d)
sentence = torch.randn(5, d)  # five positions

by_loop = torch.zeros(5, d)
for t in range(5):
    hidden = [max(0.0, float(sentence[t] @ W1[:, j] + b1[j])) for j in range(d_ff)]
    for c in range(d):
        by_loop[t, c] = sum(hidden[j] * W2[j, c] for j in range(d_ff)) + b2[c]
claim(
    "the loop over positions and features equals the matrix form",
    torch.allclose(by_loop, ffn(sentence, W1, b1, W2, b2), atol=1e-4),
)
claim(
    "a batch of three sentences, too",
    torch.allclose(ffn(sentence.expand(3, 5, d), W1, b1, W2, b2)[2], by_loop, atol=1e-4),
)

moved = sentence.clone()
moved[2] += 1
change = (ffn(moved, W1, b1, W2, b2) - ffn(sentence, W1, b1, W2, b2)).abs().amax(dim=-1)
claim("moving position 2 changes position 2 and no other", bool(change[2] > 0.1) and change[[0, 1, 3, 4]].max() < 1e-5)

weights = torch.rand(5, 5).softmax(dim=-1)  # attention, once its weights are given
a, b = torch.randn(5, d), torch.randn(5, d)
claim(
    "given the weights, attention of a sum is the sum of attentions",
    torch.allclose(weights @ (a + b), weights @ a + weights @ b, atol=1e-5),
)
claim(
    "the feed-forward network is not linear",
    (ffn(a + b, W1, b1, W2, b2) - ffn(a, W1, b1, W2, b2) - ffn(b, W1, b1, W2, b2)).abs().max() > 1,
)

# %% [markdown] question="06.2"
# **Predict.** A small language model is trained with five kinds of block: without any feed-forward network; with one that is linear (no ReLU); with a ReLU and a middle as wide as $d$, twice, four times as wide. Order them from worst to best.
#
# - a) all about equal: attention does the work
# - b) none, then linear and ReLU 1× about equal, then 2×, then 4×
# - c) none and linear equal and bad, ReLU far better whatever its width
#
# ### BEGIN ANSWER
# right: b
# a: Look at the table: the network is worth about a fifth of a nat. That is a lot.
# b: Yes. A linear network already brings something: each position can transform its own vector without averaging it with others, and the norm in front of it is not linear. A ReLU at the same width (4×) brings more; at 1× it is only level with the wide linear one.
# c: A linear network does help. It works on each position's own vector, which attention can only average with others, and the norm in front of it is not linear.
# ### END ANSWER

# %%
table = measured.load("blocks")


def block_rows(names):
    return [(name, table["parameters"][name], measured.spread(table["nats"][name], 3)) for name in names]


display(
    plots.table(
        block_rows(
            [
                "no feed-forward network",
                "linear, 4 times as wide",
                "ReLU, 1 times",
                "ReLU, 2 times",
                "ReLU, 4 times",
                "GELU, 4 times",
            ]
        ),
        header=("feed-forward network", "parameters", "nats a character, held out"),
        caption="Authors' runs: two blocks, 32 features, 400 steps on Python's manual, three seeds (lowest … highest)",
    )
)
claim(
    "on every seed the ReLU network is better than the linear one of the same size",
    max(table["nats"]["ReLU, 4 times"]) < min(table["nats"]["linear, 4 times as wide"]),
)
claim(
    "on every seed a linear one is better than none",
    max(table["nats"]["linear, 4 times as wide"]) < min(table["nats"]["no feed-forward network"]),
)

# %% [markdown]
# **What you see.** ReLU or GELU hardly matters; width does. **What you might wrongly conclude:** "without the network a Transformer is linear." The attention *weights* come from a softmax of products of the input. That is why the model without network still learns something. What is linear is the way values are mixed.
#
# ## 3 Layer normalisation
#
# Stack twelve layers that each multiply by a matrix, and the numbers shrink to nothing or grow beyond all bounds. **Layer norm** puts every vector back on the same scale, each position on its own, over its features:
#
# $$
# \begin{aligned}
# \operatorname{LN}(x) &= \gamma \odot \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}} + \beta
# && \mu = \tfrac1d \sum_{c} x_c, \quad \sigma^2 = \tfrac1d \sum_{c} (x_c - \mu)^2, \quad x, \gamma, \beta \in \mathbb{R}^{d}
# \end{aligned}
# $$
#
# $\gamma$ and $\beta$ are learned: the layer can choose another scale if it needs one. Note $\tfrac1d$, not $\tfrac1{d-1}$, and $\varepsilon$ *under* the root.

# %% [markdown] question="06.3"
# **Predict.** A vector $x$ is replaced by $10x + 3$ (every entry). How does $\operatorname{LN}(x)$ change, for $\varepsilon$ near 0?
#
# - a) it becomes ten times as large
# - b) it is shifted by 3
# - c) not at all
#
# ### BEGIN ANSWER
# right: c
# a: The standard deviation becomes ten times as large as well, and one divides by it.
# b: The mean rises by 3, too, and is subtracted.
# c: Yes: shift and scale of a vector are exactly what the norm takes away. What a layer says is in the pattern, not in the size.
# ### END ANSWER


# %% exercise="layer_norm" minutes=10 difficulty=1
def layer_norm(x, gamma, beta, eps):
    """Each vector on its own: mean 0 and variance 1 over its features, then scaled by gamma and shifted by beta.

    x (..., d), gamma (d), beta (d), eps a small number under the root -> (..., d). The variance divides by d.
    """
    ### BEGIN SOLUTION
    centred = x - x.mean(dim=-1, keepdim=True)
    variance = centred.pow(2).mean(dim=-1, keepdim=True)
    return centred / torch.sqrt(variance + eps) * gamma + beta
    ### END SOLUTION


# %% [markdown] hints="layer_norm"
# 1. Over which axis do mean and variance run, so that no word hears of another? What does `keepdim=True` do for you?
# 2. Subtract the mean first; the variance is the mean of the squares of what is left. Where does `eps` stand, and when do gamma and beta come?
# 3. `centred = x - x.mean(-1, keepdim=True)`, then `centred / torch.sqrt((centred ** 2).mean(-1, keepdim=True) + eps) * gamma + beta`

# %%
norm = use(layer_norm)
words = ["dog", "bites", "man"]
x = torch.tensor([[1.0, 2.0, 3.0, 4.0], [10.0, 20.0, 30.0, 40.0], [-1.0, 5.0, -1.0, 5.0]])
one, zero = torch.ones(4), torch.zeros(4)
out = norm(x, one, zero, 1e-5)
display(
    plots.table(
        [
            (word, str(before), *after)
            for word, before, after in zip(
                words, [[int(n) for n in row] for row in x.tolist()], out.tolist(), strict=True
            )
        ],
        header=("word", "before", *(f"after: feature {c}" for c in range(4))),
        caption="Three words: 'dog' and 'bites' differ by a factor of ten only",
        digits=3,
    )
)
by_loop = torch.zeros(3, 4)
for i, row in enumerate(x.tolist()):
    mu = sum(row) / 4
    var = sum((n - mu) ** 2 for n in row) / 4
    by_loop[i] = torch.tensor([(n - mu) / math.sqrt(var + 1e-5) for n in row])
claim("the loop and your function agree", torch.allclose(by_loop, out, atol=1e-5))
gamma, beta, batch = torch.randn(4), torch.randn(4), torch.randn(2, 3, 4)
claim(
    "torch's own layer norm agrees, on a batch and with gamma and beta",
    torch.allclose(norm(batch, gamma, beta, 1e-5), F.layer_norm(batch, (4,), gamma, beta, 1e-5), atol=1e-5),
)
claim(
    "10 x + 3 gives the same as x",
    torch.allclose(norm(10 * batch + 3, one, zero, 0.0), norm(batch, one, zero, 0.0), atol=1e-4),
)

# %% [markdown]
# ## 4 Dropout
#
# During training, switch off a random part of the features: each entry becomes zero with probability $p$. The model cannot rely on any single one. When it is used later, nothing is switched off. So that the next layer sees the same *average* both times, the survivors are scaled up in training (**inverted dropout**):
#
# $$
# \begin{aligned}
# \operatorname{dropout}(x)_c &= \begin{cases} 0 & \text{with probability } p \\ x_c / (1 - p) & \text{otherwise} \end{cases}
# && \mathbb{E}[\operatorname{dropout}(x)_c] = (1-p)\,\frac{x_c}{1-p} = x_c
# \end{aligned}
# $$
#
# Our runs are short and never see a text often enough to learn it by heart, so they use $p = 0$. The 2017 paper used 0.1.

# %% [markdown] question="06.4"
# **Compute.** $p = 0.2$ and $x_c = 4$. What does a surviving entry become?
#
# ### BEGIN ANSWER
# right: 5
# tolerance: 0.001
# explain: 4 / (1 - 0.2) = 5. Four times out of five it is 5, once it is 0: on average 4.
# ### END ANSWER


# %% exercise="dropout" minutes=10 difficulty=1
def dropout(x, p, training):
    """Inverted dropout: while training, each entry is zero with probability p, and x / (1 - p) otherwise.

    x any shape, 0 <= p < 1, training True or False -> the same shape. If not training, x comes back as it is.
    """
    ### BEGIN SOLUTION
    if not training or p == 0:
        return x
    kept = torch.rand_like(x) >= p
    return x * kept / (1 - p)
    ### END SOLUTION


# %% [markdown] hints="dropout"
# 1. When is nothing to be done at all? Which share of the entries survives, and by what must survivors be divided?
# 2. `torch.rand_like(x)` is evenly spread over 0 … 1: with which comparison is it True with probability 1 − p?
# 3. `return x * (torch.rand_like(x) >= p) / (1 - p) if training else x`

# %%
drop = use(dropout)
seed_everything(0)
ones = torch.ones(100_000)
thinned = drop(ones, 0.2, True)
claim("about a fifth of the entries is zero", abs((thinned == 0).float().mean() - 0.2) < 0.01)
claim("the mean stays what it was", abs(thinned.mean() - 1) < 0.01)
claim("outside training nothing changes", torch.equal(drop(ones, 0.2, False), ones))

# %% [markdown]
# ## 5 The block
#
# Now put the parts around attention. The most important one is a plus sign. A **residual connection** adds what a sub-layer computes to what came in: $x + f(x)$. A layer then has to say only what should *change*, and the gradient finds a way back on which nothing is multiplied.
#
# Where does the norm go? There are two answers, and papers, lectures and code often mean different ones.
#
# $$
# \begin{aligned}
# \textbf{post-norm (2017, and the lecture's diagram)} \quad
# & x' = \operatorname{LN}_1\big(x + \operatorname{Attention}(x)\big),
# && y = \operatorname{LN}_2\big(x' + \operatorname{FFN}(x')\big) \\
# \textbf{pre-norm (most models since about 2019)} \quad
# & x' = x + \operatorname{Attention}\big(\operatorname{LN}_1(x)\big),
# && y = x' + \operatorname{FFN}\big(\operatorname{LN}_2(x')\big)
# \end{aligned}
# $$
#
# with $x, x', y \in \mathbb{R}^{T \times d}$. In post-norm the norm stands *on* the stream, and the second residual starts at the first norm's output. In pre-norm only what a sub-layer *reads* is normalised; the stream is only ever added to.

# %% [markdown] question="06.5"
# **Predict.** All output weights of the attention and of the feed-forward network are zero (with their biases). What does each block return for $x$?
#
# - a) both return $x$
# - b) pre-norm returns $x$; post-norm returns a normalised $x$
# - c) both return zero
#
# ### BEGIN ANSWER
# right: b
# a: Look where the norm stands in post-norm: nothing reaches the output without passing it.
# b: Yes: in a pre-norm stack there is a path from the first layer to the last on which nothing happens to $x$. In post-norm every block norms the stream twice.
# c: The residuals still carry $x$.
# ### END ANSWER


# %% exercise="TransformerBlock" minutes=20 difficulty=2
class TransformerBlock(nn.Module):
    """Pre-norm block: attention, then a feed-forward network with ReLU, each on a normalised copy, each added to the stream.

    forward(x (B, T, d_model), mask=None) -> (B, T, d_model). Parts: ln1, ln2 = nn.LayerNorm(d_model); attn =
    attention(d_model, n_heads); ff1 = nn.Linear(d_model, d_ff); ff2 = nn.Linear(d_ff, d_model); drop = nn.Dropout(dropout), on
    what each sub-layer adds.
    """

    def __init__(self, d_model, n_heads, d_ff, dropout=0.0):
        super().__init__()
        ### BEGIN SOLUTION
        self.ln1, self.ln2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attn = attention(d_model, n_heads)
        self.ff1, self.ff2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.drop = nn.Dropout(dropout)
        ### END SOLUTION

    def forward(self, x, mask=None):
        ### BEGIN SOLUTION
        x = x + self.drop(self.attn(self.ln1(x), None, mask))
        return x + self.drop(self.ff2(F.relu(self.ff1(self.ln2(x)))))
        ### END SOLUTION


# %% [markdown] hints="TransformerBlock"
# 1. With all output weights zero, the block must return x itself, not LN(x). Where does each residual start, and what does each sub-layer read?
# 2. Two lines, the same pattern: stream plus drop(sub-layer(norm(stream))). The second starts from the result of the first. Does the mask reach the attention?
# 3. `x = x + self.drop(self.attn(self.ln1(x), None, mask))` and `return x + self.drop(self.ff2(torch.relu(self.ff1(self.ln2(x)))))`

# %% [markdown]
# The lecture's diagram as code, and torch's own layer beside both orders. The weights are the same in all; only the order differs.

# %%
Block = use(TransformerBlock)
seed_everything(0)
block = transformer.TransformerBlock(16, 4, 64).eval()  # the course's, to take apart
x = torch.randn(2, 6, 16)


def network(z):
    return block.ff2(F.relu(block.ff1(z)))


def lecture_block(x):
    """Post-norm, line by line as the lecture draws it."""
    added = x + block.attn(x)  # (+)
    normed = block.ln1(added)  # LayerNorm
    added = normed + network(normed)  # (+), from the first LayerNorm's output
    return block.ln2(added)  # LayerNorm


def pre_norm_block(x):
    x = x + block.attn(block.ln1(x))
    return x + network(block.ln2(x))


with torch.no_grad():
    torch_post, torch_pre = (experiments.torch_encoder_layer(block, 4, norm_first=first) for first in (False, True))
    claim(
        "the lecture's diagram is torch's encoder layer with norm_first=False",
        torch.allclose(lecture_block(x), torch_post(x), atol=1e-5),
    )
    claim(
        "pre-norm is torch's encoder layer with norm_first=True",
        torch.allclose(pre_norm_block(x), torch_pre(x), atol=1e-5),
    )
    mine = Block(16, 4, 64).eval()
    if experiments.adopt(mine, block):  # not if your attention keeps its weights in a form of its own
        claim("and so is your block", torch.allclose(mine(x), torch_pre(x), atol=1e-5))
    claim("post-norm leaves every position with mean 0", lecture_block(x).mean(dim=-1).abs().max() < 1e-5)
    claim("pre-norm does not", pre_norm_block(x).mean(dim=-1).abs().max() > 0.05)

# %% [markdown]
# ## 6 Depth
#
# A stack is blocks one after the other, each with weights of its own.


# %% exercise="build_encoder" minutes=5 difficulty=1
def build_encoder(make_layer, n_layers):
    """A module that runs n_layers layers one after the other, each made by its own call of make_layer().

    Returns an nn.Module; module(x) -> the last layer's output. All layers are registered, so that an optimiser finds their weights.
    """
    ### BEGIN SOLUTION
    return nn.Sequential(*(make_layer() for _ in range(n_layers)))
    ### END SOLUTION


# %% [markdown] hints="build_encoder"
# 1. If you make one layer and use it n times, how many different weights are there? And if layers lie in a Python list, who finds them?
# 2. Call `make_layer()` once for each layer, and hand the results to a container of `torch.nn`.
# 3. `return nn.Sequential(*[make_layer() for _ in range(n_layers)])`

# %%
stack = use(build_encoder)
seed_everything(0)
encoder = stack(lambda: Block(16, 4, 64), 3)
claim(
    "three blocks have three times the parameters of one", n_parameters(encoder) == 3 * n_parameters(Block(16, 4, 64))
)
matrices = [p for p in encoder.parameters() if p.dim() == 2]
claim("no two matrices start alike", len({p[0, 0].item() for p in matrices}) == len(matrices))

# %% [markdown]
# Now leave parts out. Twelve blocks, the same text, the same 150 steps at a constant learning rate of 0.003, the same examples. **"Neither"** is section 1.

# %% [markdown] question="06.6"
# **Predict.** Which of these stacks of *twelve* blocks gets clearly (0.3 nats) below predicting each character by its frequency?
#
# - a) all but the one with neither norm nor residual
# - b) pre-norm and post-norm; a norm and a residual are what it takes
# - c) pre-norm alone
#
# ### BEGIN ANSWER
# right: c
# a: A norm without residual keeps gradients healthy and still fails; look at the column "alike". A residual without norm starts with a loss of 50 and more.
# b: At four blocks both do train, and so does a stack without any norm. Depth is what separates them: at twelve, post-norm does not get off the ground at this learning rate.
# c: Yes, in this short run. Where the norm stands decides.
# ### END ANSWER

# %%
full = measured.load("depth")
unigram = experiments.frequency_nats(text)  # on the very batches over which the loss is averaged
now = {}
for variant in ("pre-norm", "post-norm"):
    deep = experiments.deep_model(text, 12, variant)
    now[variant], _ = experiments.train_deep(deep, text, label=f"12 blocks, {variant}")


def depth_row(name):
    runs = full["runs"][f"12 {name}"]
    nats = [run["nats"] for run in runs]
    gradients = runs[0]["gradients"]
    return (
        name,
        now.get(name),
        "diverges" if None in nats else measured.spread(nats),
        measured.spread([run["first_loss"] for run in runs], 1),
        *(f"{g:.0e}" for g in gradients),
        measured.spread([run["likeness"][1] for run in runs]),
    )


display(
    plots.table(
        [depth_row(name) for name in experiments.VARIANTS],
        header=(
            "twelve blocks",
            "nats, this run",
            "authors: nats",
            "loss before training",
            "gradient: first block",
            "gradient: middle",
            "gradient: last block",
            "alike at the end",
        ),
        caption=f"Training loss after 150 steps; characters by frequency alone, on the same text: {unigram:.2f} nats. Gradients (first seed) and likeness (mean cosine between positions) at random weights",
        digits=3,
    )
)
claim("twelve pre-norm blocks get at least 0.3 nats below the frequencies", now["pre-norm"] < unigram - 0.3)
claim("twelve post-norm blocks do not get even 0.1 below", now["post-norm"] > unigram - 0.1)
claim(
    "on all three seeds of the authors as well",
    max(r["nats"] for r in full["runs"]["12 pre-norm"]) < unigram - 0.3
    and min(r["nats"] for r in full["runs"]["12 post-norm"]) > unigram - 0.1,
)

# %% [markdown]
# **What you see.** Only pre-norm trains. Each of the others fails in its own way:
# - **no norm:** every block adds to the stream, and nothing holds it in scale. The loss starts in the dozens or higher, and the gradients are hundreds of times too large.
# - **no residual:** look at the last column. The gradients are healthy, the scale is fine, and still nothing is learned: all positions are alike, the text is gone before the last block.
# - **neither:** alike as well, and the gradient is about 0.0001 where pre-norm has 0.3 to 0.8.
# - **post-norm:** at random weights nothing looks wrong. Look again after twenty steps.

# %%
rows, share, stacks, gradients = [], {}, {}, {}
for variant in ("pre-norm", "post-norm"):
    stacks[variant] = deep = experiments.deep_model(text, 12, variant)
    before = experiments.gradient_norms(deep, text)
    experiments.train_deep(deep, text, steps=20, label=f"12 blocks, {variant}, 20 steps")
    after = experiments.gradient_norms(deep, text)
    rows.append((variant, *(f"{g:.0e}" for g in (before[0], before[-1], after[0], after[-1]))))
    share[variant], gradients[variant] = after[0] / after[-1], after
display(
    plots.table(
        rows,
        header=("twelve blocks", "before: first block", "last block", "after 20 steps: first block", "last block"),
        caption="Norm of the gradient, before training and after twenty steps",
    )
)
claim(
    "after twenty steps post-norm's first block gets less than a twentieth of the last block's gradient",
    share["post-norm"] < 0.05,
)
claim("pre-norm's gets at least half as much", share["pre-norm"] >= 0.5)

# %% [markdown]
# Walk through the stack, step by step: norm, attention, add, norm, network, add. You see the stream of six characters in the first four blocks of both stacks, as they are after these twenty steps, and the gradients of all twelve.

# %%
characters = "import"
past_only = transformer.causal_mask(len(characters))
records, given = {}, {}
for variant, model in stacks.items():
    with torch.no_grad():
        given[variant] = out = model.emb(text.encode(characters)).unsqueeze(0)
        records[variant] = widgets.BlockStepper.trace(model.blocks[:4], out, past_only)
stepper = widgets.BlockStepper(
    records["pre-norm"],
    records["post-norm"],
    list(characters),
    {"pre": gradients["pre-norm"], "post": gradients["post-norm"]},
)
stepper

# %%
record, out = records["pre-norm"], given["pre-norm"]
with torch.no_grad():
    for one in stacks["pre-norm"].blocks[:4]:
        out = one(out, past_only)
total = torch.tensor(record["start"] + record["added"].sum(axis=0), dtype=torch.float32)
display(
    stepper.compare(
        "b", "Nothing is overwritten: the stream is the embedding plus the eight vectors that four blocks added."
    )
)
claim("embedding plus everything added is what the four blocks give (1e-4)", torch.allclose(total, out[0], atol=1e-4))

# %% [markdown]
# In post-norm everything on the stream passes 24 norms. A few steps at the full rate push all positions together, and then no gradient reaches the first blocks. In pre-norm the sum $x + \dots$ carries it there.
#
# **A residual is a highway**, and you have met one: the LSTM's cell of notebook 01, which was added to, not pushed through a matrix. (Its forget gate still multiplies, by about 0.73 at first; that is why its curve falls below. A residual multiplies by 1.) There the gradient had to travel through *time*, here through *depth*. Side by side, relative to where it starts:

# %%
names = {"pre-norm": "norm and residual", "no residual": "norm only", "no norm": "residual only", "neither": "neither"}
deep_gradients = {
    name: experiments.stream_gradients(experiments.deep_model(text, 24, variant), text)
    for variant, name in names.items()
}
distances = [0, 1, 2, 4, 8, 16, 23]
time_gradients = {
    name: experiments.influence(experiments.LAYERS[name], distances) for name in ("RNN", "LSTM, forget bias 1")
}
curves = {f"depth: {name}": [g[-1 - k] / g[-1] for k in distances] for name, g in deep_gradients.items()} | {
    f"time: {name}": [value / values[0] for value in values] for name, values in time_gradients.items()
}
display(
    plots.lines(
        distances,
        curves,
        xlabel="blocks (or steps) the gradient has travelled",
        ylabel="gradient, relative to the start",
        title="The gradient on its way back, through depth and through time",
        logy=True,
    )
)
claim(
    "with norm and residual the gradient of the first of 24 blocks is at least as large as that of the last",
    curves["depth: norm and residual"][-1] >= 1,
)
claim("with neither, less than a thousandth is left", curves["depth: neither"][-1] < 1e-3)
claim("with a residual only, it grows more than a thousandfold", curves["depth: residual only"][-1] > 1e3)

# %% [markdown]
# **What you see.** With neither, the gradient dies out, as in the RNN. A residual alone keeps it alive, and lets it explode. A norm alone keeps its size, too, but by then all positions carry the same vector. Only both together keep size *and* content.
#
# ### Warm-up
#
# The 2017 paper used post-norm, and did not start at the full learning rate. It raises the rate linearly for some thousand steps, then lowers it in proportion to $1/\sqrt{s}$ ("noam" is Noam Shazeer, one of its authors):
#
# $$
# \begin{aligned}
# \operatorname{lr}(s) &= d_{model}^{-1/2} \cdot \min\!\big(s^{-1/2},\; s \cdot w^{-3/2}\big)
# && s = 1, 2, \dots \text{ (step)}, \quad w \text{ (steps of warm-up)}
# \end{aligned}
# $$


# %% exercise="noam_lr" minutes=5 difficulty=1
def noam_lr(step, d_model, warmup):
    """The learning rate of the 2017 paper: a linear rise for warmup steps, then a fall with one over the root of the step.

    step 0, 1, 2, … (step 0 counts as 1), d_model and warmup at least 1 -> a number.
    """
    ### BEGIN SOLUTION
    step = max(step, 1)
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
    ### END SOLUTION


# %% [markdown] hints="noam_lr"
# 1. What would step 0 do to the formula? At which step are the two branches equal?
# 2. Guard step 0 first; then one product: a factor for the model's size, and the smaller of two branches.
# 3. `step = max(step, 1)`, then `return d_model ** -0.5 * min(step ** -0.5, step * warmup ** -1.5)`

# %%
rate = use(noam_lr)
steps = list(range(0, 1001, 10))
display(
    plots.lines(
        steps,
        {f"d_model = {d}, warm-up {w}": [rate(s, d, w) for s in steps] for d, w in ((64, 100), (64, 400), (256, 100))},
        xlabel="step",
        ylabel="learning rate",
        title="Up in a line, down with one over the root",
    )
)
claim("the top is at the end of the warm-up", max(range(1, 1000), key=lambda s: rate(s, 64, 100)) == 100)

# %% [markdown] question="06.7"
# **Predict.** Post-norm with a warm-up of 100 steps up to the same learning rate, against none. (After the rise the rate stays constant here, so that only the start differs.) Where does it help?
#
# - a) at 6 blocks and at 12
# - b) at 6 blocks, not at 12
# - c) nowhere: a learning rate that is too high stays too high
#
# ### BEGIN ANSWER
# right: b
# a: That would be the usual story. At twelve blocks and this learning rate it is not enough.
# b: Yes, within these 150 steps. Warm-up moves the depth at which post-norm breaks; it does not remove it.
# c: Look at six blocks: stuck without warm-up, fine with it, and the rate at the end is the same.
# ### END ANSWER

# %%
for warmup in (0, 100):
    name = "post-norm" + (", warm-up" if warmup else "")
    six = experiments.deep_model(text, 6, "post-norm")
    now[f"6 {name}"], _ = experiments.train_deep(six, text, warmup=warmup, label=f"6 blocks, {name}")
rows = []
for name in ("pre-norm", "post-norm", "post-norm, warm-up", "no norm", "no residual", "neither"):
    runs = [[run["nats"] for run in full["runs"][f"{n} {name}"]] for n in (4, 6, 12, 24)]
    rows.append((name, now.get(f"6 {name}"), *("diverges" if None in nats else measured.spread(nats) for nats in runs)))
display(
    plots.table(
        rows,
        header=("", "6 blocks, this run", *(f"{n} blocks" for n in (4, 6, 12, 24))),
        caption=f"Nats after 150 steps, authors' three seeds by depth (frequencies alone: {unigram:.2f})",
        digits=3,
    )
)
claim(
    "six post-norm blocks with warm-up get at least 0.3 below the frequencies",
    now["6 post-norm, warm-up"] < unigram - 0.3,
)
claim("and at least 0.2 below those without warm-up", now["6 post-norm, warm-up"] < now["6 post-norm"] - 0.2)

# %% [markdown]
# **What you see.** Four post-norm blocks train without help (a little *better* than pre-norm, which is why one does not give it up lightly), six with warm-up, twelve not at this rate. Pre-norm trains at every depth here, somewhat more slowly with more blocks. **What you might wrongly conclude:** "No norm, no training." Four and six blocks train well without one; it is depth that needs it. Nor: "Post-norm is wrong." The first Transformers were post-norm, with more careful learning rates
# and longer warm-ups than our 150 steps allow.
#
# ## 7 One training step, and tied weights
#
# Everything so far was trained for you. The loop is five lines, and each of them can be in the wrong place. One part is new, **gradient clipping**: if the norm of all gradients together exceeds `max_norm`, all are scaled down to it, so that one bad batch cannot throw the model off. torch does it with `nn.utils.clip_grad_norm_(parameters, max_norm)`.


# %% exercise="train_step" minutes=10 difficulty=2
def train_step(model, optimizer, x, y, max_norm=None):
    """One update of a classifier; the loss before the update, as a float.

    model(x) -> logits (N, V); y (N) holds the right classes; the loss is the mean cross-entropy. max_norm, if given, limits the norm
    of all gradients together. Sets train mode first.
    """
    ### BEGIN SOLUTION
    model.train()
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    if max_norm is not None:
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss.item()
    ### END SOLUTION


# %% [markdown] hints="train_step"
# 1. What is still in `.grad` from last time? When do the new gradients exist, and who uses them?
# 2. Train mode; loss; clear old gradients; backward; clip if asked; step. Return a number, not a tensor.
# 3. `model.train()`, `loss = F.cross_entropy(model(x), y)`, `optimizer.zero_grad()`, `loss.backward()`, `if max_norm is not None: nn.utils.clip_grad_norm_(model.parameters(), max_norm)`, `optimizer.step()`, `return loss.item()`

# %% [markdown]
# A language model has two tables of the shape (vocabulary, $d$): one turns symbols into vectors, the other scores vectors against symbols. They can be **one and the same** matrix.


# %% exercise="TiedLM" minutes=10 difficulty=1
class TiedLM(nn.Module):
    """The smallest language model with tied weights: one matrix looks symbols up and scores them.

    emb = nn.Embedding(vocab, d_model); head = nn.Linear without bias, which *shares* the weight of emb.
    forward(idx (B, T)) -> logits (B, T, vocab).
    """

    def __init__(self, vocab, d_model):
        super().__init__()
        ### BEGIN SOLUTION
        self.emb = nn.Embedding(vocab, d_model)
        self.head = nn.Linear(d_model, vocab, bias=False)
        self.head.weight = self.emb.weight
        ### END SOLUTION

    def forward(self, idx):
        ### BEGIN SOLUTION
        return self.head(self.emb(idx))
        ### END SOLUTION


# %% [markdown] hints="TiedLM"
# 1. How many parameters should `list(model.parameters())` show? Which shape does the weight of `nn.Linear(d_model, vocab)` have?
# 2. Make both layers, then let the head's weight *be* the embedding's Parameter. `.data` would share numbers but leave two parameters.
# 3. `self.emb = nn.Embedding(vocab, d_model)`, `self.head = nn.Linear(d_model, vocab, bias=False)`, `self.head.weight = self.emb.weight`; forward: `return self.head(self.emb(idx))`

# %% [markdown] question="06.8"
# **Predict.** Your `TiedLM` reads one character and predicts the next; there is no block between the two tables. How well can it do on the manual, compared with counting pairs (a 2-gram)?
#
# - a) as well as the 2-gram: it has a score for every pair
# - b) better: vectors generalise
# - c) clearly worse: one table for both jobs is too little
#
# ### BEGIN ANSWER
# right: c
# a: It has a *score* for every pair, but not a free one. Write the score as a dot product.
# b: There is little to generalise: nearly all pairs in the held-out text have been counted in training.
# c: Yes: its score for "u after q" is $e_q \cdot e_u$, the same number as for "q after u". Tied weights need something between the two tables that tells "what I have" from "what comes next": the blocks.
# ### END ANSWER

# %%
update, Tied = use(train_step), use(TiedLM)
windows = text.windows(32, 200, seed=1)  # held out; the windows of notebook 04
ngrams = {n: NGram(text.train, vocab, n).nats(windows) for n in (1, 2, 3, 4, 5)}


def train_pairs(model, n_steps=600):
    """Train a model of single characters with your train_step and your noam_lr; its held-out nats."""
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))
    model = nn.Sequential(model, nn.Flatten(0, 1))  # (N, 1) -> logits (N, V)
    batches = text.batches(32, 16, seed=0)
    for step in range(mode.steps(n_steps)):  # fewer in quick test runs
        optimizer.param_groups[0]["lr"] = rate(step, 64, 100)
        batch = next(batches)
        update(model, optimizer, batch[:, :-1].reshape(-1, 1), batch[:, 1:].flatten(), max_norm=1.0)
    with torch.no_grad():
        return F.cross_entropy(model(windows[:, :-1].reshape(-1, 1)), windows[:, 1:].flatten()).item()


seed_everything(0)
tied = Tied(vocab, 64)
for table_of_symbols in tied.parameters():  # torch's own start, std 1, would make the first scores far too large
    nn.init.normal_(table_of_symbols, std=0.1)
seed_everything(0)
untied = nn.Sequential(nn.Embedding(vocab, 64), nn.Linear(64, vocab, bias=False))
pairs = {"tied": train_pairs(tied), "two tables": train_pairs(untied)}
display(
    plots.table(
        [
            ("1-gram", None, ngrams[1]),
            ("one table, tied", n_parameters(tied), pairs["tied"]),
            ("two tables", n_parameters(untied), pairs["two tables"]),
            ("2-gram", None, ngrams[2]),
        ],
        header=("model", "parameters", "nats a character, held out"),
        caption="Predicting a character from the one before",
    )
)
with torch.no_grad():
    q, u = text.encode("qu").tolist()
    scores = tied(torch.tensor([[q], [u]]))[:, 0]
claim("'u after q' and 'q after u' get the same score", abs(float(scores[0, u] - scores[1, q])) < 1e-4)
claim("two tables come within 0.1 nats of the 2-gram", pairs["two tables"] - ngrams[2] < 0.1)
claim("one table alone is at least 0.1 nats worse than two", pairs["tied"] - pairs["two tables"] > 0.1)

# %% [markdown]
# **What you see.** Without blocks, tying hurts. In a real model the blocks stand between, and tying saves a table: at 64 features and 50,000 words that is 3.2 million parameters.
#
# ## 8 Decoder-only: a language model of your blocks
#
# Embedding, learned positions, your blocks with a causal mask, a last norm (nothing has held the stream of pre-norm blocks in scale), the tied head. That is all of a decoder-only Transformer. How does its loss depend on its size?

# %% [markdown] question="06.9"
# **Predict.** Four models of two blocks, 8, 16, 32 and 64 features wide, the same 600 steps. What does each doubling of the width do to the loss?
#
# - a) it lowers the loss by a few tenths of a nat each time, with no end in sight
# - b) the first doubling brings nearly everything, the others next to nothing
# - c) from 16 on it does harm: 600 steps are too few for so many parameters
#
# ### BEGIN ANSWER
# right: a
# a: Yes, over this range. On a logarithmic axis of parameters the points lie near a line. That is what a scaling law looks like in small.
# b: So it must become in the end, when the text is used up. Look how far from a bend these four points are.
# c: Wider models learn *faster* in the same number of steps.
# ### END ANSWER

# %%
models, points, mask = {}, [], use("causal_mask")
for width in (8, 16, 32, 64):
    seed_everything(0)
    models[width] = transformer.LanguageModel(vocab, width, block_size=32, mask=mask, make_block=Block)
    experiments.train_language_model(models[width], text, steps=600, label=f"{width} features")
    points.append((n_parameters(models[width]), experiments.held_out_nats(models[width], text)))
display(
    plots.lines(
        [n for n, _ in points],
        {"Transformer, two blocks": [nats for _, nats in points]},
        xlabel="parameters",
        ylabel="nats a character, held out",
        title="Four sizes, the same text and steps",
        logx=True,
        hline=(ngrams[3], f"3-gram, counted: {ngrams[3]:.2f}"),
    )
)
sizes = measured.load("sizes")
display(
    plots.table(
        [
            (
                f"{width} features",
                sizes["parameters"][str(width)],
                nats,
                *(measured.spread(sizes["nats"][f"{width} wide, {steps} steps"]) for steps in (600, 1800)),
            )
            for width, (_, nats) in zip(models, points, strict=True)
        ],
        header=("", "parameters", "this run", "authors: 600 steps", "authors: 1,800 steps"),
        caption=f"Held-out nats by size. Counting on the same windows: 3-gram {ngrams[3]:.2f}, 4-gram {ngrams[4]:.2f}, 5-gram {ngrams[5]:.2f}",
        digits=3,
    )
)
write = use("generate")
seed_everything(0)
print(text.decode(write(models[64], text.encode("The ").unsqueeze(0), 160, temperature=0.7)[0]))
claim("the largest model beats the 3-gram on the same held-out windows", points[-1][1] < ngrams[3])
claim("every doubling of the width helps", all(a[1] > b[1] for a, b in itertools.pairwise(points)))

# %% [markdown]
# **What you see.** Words, brackets, something like sentences, and no sense: a hundred thousand parameters and half a minute. It beats counting triples. A 5-gram, which simply remembers, is still ahead after this short run; three times the steps come within 0.03 nats of it (last column), and pass the 4-gram.
#
# ### From here to a hundred blocks
#
# How many parameters does a block have? Attention has four matrices, the network two of four times the width:
#
# $$
# \begin{aligned}
# N_{block} &= \underbrace{4d^2 + 4d}_{W_Q, W_K, W_V, W_O} + \underbrace{2 \cdot 4d^2 + 4d + d}_{W_1, W_2} + \underbrace{2 \cdot 2d}_{\text{norms}} = 12 d^2 + 13 d
# && \text{multiplications for each of } T \text{ positions: } 12 d^2 + 2\,T d
# \end{aligned}
# $$
#
# An attention without biases has $4d$ fewer.

# %% [markdown] question="06.10"
# **Compute.** GPT-3 has 96 blocks of width $d = 12{,}288$ (Brown et al. 2020). How many *billion* parameters are in the blocks, by the formula $12 d^2$ a block?
#
# ### BEGIN ANSWER
# right: 174
# tolerance: 1
# explain: 96 · 12 · 12,288² ≈ 174 billion. The tables of words and positions bring it to the 175 billion of its name.
# ### END ANSWER

# %%


def block_parameters(d):
    return 12 * d * d + 13 * d


claim("the formula counts a block", n_parameters(transformer.TransformerBlock(64, 4, 256)) == block_parameters(64))
print(
    f"64 features, by the formula: {block_parameters(64):,} parameters; in your block: {n_parameters(Block(64, 4, 256)):,}"
)
with torch.device("meta"):  # shapes without memory: nothing is stored, everything can be counted
    giant = nn.ModuleList(transformer.TransformerBlock(12_288, 96, 4 * 12_288) for _ in range(96))
for T in (32, 256):
    plain = transformer.TransformerBlock(64, 4, 256, attention=multihead.MultiHeadAttention)
    with FlopCounterMode(display=False) as counted:  # counts a multiplication and an addition as two
        plain(torch.randn(1, T, 64))
    claim(
        f"at T = {T} a block multiplies 12 d² + 2 T d times for each position",
        counted.get_total_flops() / 2 / T == 12 * 64**2 + 2 * T * 64,
    )
print(f"96 blocks of width 12,288: {n_parameters(giant):,} parameters")
claim("and 96 blocks of GPT-3's size", n_parameters(giant) == 96 * block_parameters(12_288))

# %% [markdown]
# One such block has 192 times the width of your widest and $192^2 \approx 37{,}000$ times its parameters: 1.8 billion. There are 96 of them. Nothing new is needed in the architecture; "hundreds of blocks and trillions of parameters", as the lecture says, is this block with larger $d$, more copies, and the mixture of experts of section 10.
#
# ## 9 Encoder and decoder: the scoreboard
#
# For translation the 2017 paper uses two stacks. The **encoder** reads the source with no mask (every word sees every word; only padding is hidden). The **decoder** writes with a causal mask, and in each of its blocks a second attention looks at the encoder's output: **cross-attention**, the decoder's attention of notebook 02, with
# queries from the decoder, keys and values from the encoder.
#
# $$
# \begin{aligned}
# x' &= x + \operatorname{SelfAttention}\big(\operatorname{LN}_1(x)\big) && \text{causal mask, } x \in \mathbb{R}^{T_t \times d} \\
# x'' &= x' + \operatorname{CrossAttention}\big(\operatorname{LN}_2(x'),\; h\big) && h \in \mathbb{R}^{T_s \times d} \text{ (encoder), weights } T_t \times T_s \\
# y &= x'' + \operatorname{FFN}\big(\operatorname{LN}_3(x'')\big)
# \end{aligned}
# $$
#
# A decoder block has two attentions and three norms: $16d^2 + 19d$ parameters at $d_{ff} = 4d$.
#
# The same task as in notebooks 01 and 02: the same sentences, 1,000 steps, the same examples in the same order. Each stack is one block here ($d_{ff} = 2d$, sinusoidal positions), 16 % more parameters than additive attention; the learning rate is 0.003 instead of 0.005. No recurrence is left: all target positions are trained at once. Encoder blocks, stack and the decoder's self-attention are your own parts. (The cross-attention is the course's: it keeps its weights, and we want to look at them.)

# %% [markdown] question="06.11"
# **Predict.** Exact match of the Transformer at one to six dates, and at seven and eight, beyond its training?
#
# - a) high up to six dates, near 0 beyond: like additive attention
# - b) high everywhere: without recurrence nothing depends on length
# - c) lower than additive attention: it has no memory that runs along the sentence
#
# ### BEGIN ANSWER
# right: a
# a: Yes. Neither positions nor endings so far out were ever trained. (Notebook 03: most positions break beyond training.) Look at the translation printed below the table: it stops too early.
# b: The operator takes any length. What was learned about positions and endings does not stretch.
# c: It has something better: every word one step away.
# ### END ANSWER

# %%
corpus = date_corpus()
seed_everything(0)
shift, loss = use("shift_right"), use("lm_loss")
make_block = experiments.encoder_block(Block)  # yours, if it takes a mask for each sentence
translator = TransformerTranslator(
    len(corpus.source_vocab),
    len(corpus.target_vocab),
    make_block=make_block,
    stack=stack,
    attention=attention,
    shift=shift,
)
history = experiments.train_translator(translator, corpus, steps=1000, lr=3e-3, loss=loss, label="Transformer")
scores = translation_scores(translator, corpus)

# %%
board = scoreboard.load("06")
board.add(scoreboard.line("Transformer", scores, n_parameters(translator), history))
display(board)
long = corpus.test[7][0]
(written,) = translate(translator, [long.source], corpus)
print(f"seven dates, {len(long.target)} words to write; written: {len(written)}: {' '.join(written)}")
claim("exact match is at least 0.9 at one to four dates", min(scores.exact_match[n] for n in range(1, 5)) >= 0.9)
claim("at eight dates, beyond training, exact match is below 0.1", scores.exact_match[8] < 0.1)
claim(
    "within the trained lengths, at least nine target words in ten read their gold source word",
    scores.mean_alignment(up_to=6) >= 0.9,
)

# %% [markdown]
# **What you see.** The third line, at the same steps. Nobody told the cross-attention where to look, and it reads the gold word. Look at one sentence, and at what each of the three attentions does in it. (Rows of both decoder maps are labelled by the word being *written*; the keys of its self-attention are the words already read.)

# %%
pair = corpus.test[2][0]
maps = experiments.translator_maps(translator, corpus, pair, n_heads=4)
for where, weights, queries, keys in maps:
    gold = [*pair.alignment, None] if where == "cross-attention" else None
    display(
        plots.heatmap(
            weights,
            queries=queries,
            keys=keys,
            title=f"{where}, mean over heads",
            gold=gold,
            query_label=f"query ({'source' if where.startswith('encoder') else 'target'} word)",
            key_label=f"key ({'target' if where.startswith('decoder') else 'source'} word)",
        )
    )

# %% [markdown]
# These maps are means over four heads. Look at the heads of the cross-attention one by one, and compare two of them.

# %%
with torch.no_grad():
    translator(make_batch([pair], corpus))
by_head = translator.decoder.layers[-1].cross.weights[0]  # (heads, target words, source words)
written_words, read_words = [*pair.target, "<eos>"], [*pair.source, "<eos>"]
viewer = widgets.AttentionViewer(
    by_head,
    written_words,
    read_words,
    title="Cross-attention, head by head",
    predict=(
        "The mean over heads reads the gold word nearly always. Does each head by itself?",
        ["yes, all four read the gold word", "no: heads differ, and some read elsewhere", "no head does"],
    ),
)
viewer

# %%
judged = [i for i, word in enumerate(pair.alignment) if word is not None]  # not every word says one source word
gold = torch.tensor([pair.alignment[i] for i in judged])
hits = (by_head[:, judged].argmax(dim=-1) == gold).double().mean(dim=1)
display(
    viewer.compare(
        "b" if hits.min() < 1 else "a",
        f"Target words whose largest weight is on their gold word, head by head: {', '.join(f'{h:.0%}' for h in hits)}.",
    )
)
claim(
    "a head is a distribution: every row sums to one",
    torch.allclose(by_head.sum(-1), torch.ones(by_head.shape[:2]), atol=1e-5),
)

# %% [markdown]
# The encoder looks both ways, the decoder's self-attention only back (the empty triangle), the cross-attention from the new word to the word it says.
#
# ## 10 Variants of today
#
# The block has hardly changed since 2017. What has:
# - **RMSNorm** divides by the root mean square and leaves the mean alone: $x / \sqrt{\tfrac1d \sum_c x_c^2 + \varepsilon} \odot \gamma$. No mean, no $\beta$.
# - **SwiGLU** gates the middle of the feed-forward network: $\big(\operatorname{SiLU}(xW_g) \odot xW_u\big) W_d$, with $\operatorname{SiLU}(z) = z\,\sigma(z)$ and $\sigma$ the logistic function. Three matrices instead of two, so the middle is $\tfrac83 d$ wide instead of $4d$: $3 \cdot \tfrac83 d^2 = 8d^2$, the same number of parameters.
# - **Mixture of experts**: several feed-forward networks side by side; a small router sends each position to one of them. With four experts the network's parameters are multiplied by four, and the multiplications stay (almost) the same. The chosen expert's output is multiplied by the router's weight: that is how the router learns.

# %% [markdown] question="06.12"
# **Predict.** A router is free to send every position to the same expert. Left to itself, will it spread the load?
#
# - a) yes, evenly: that is the best use of the parameters
# - b) no: a few experts get most of the positions
# - c) it does not matter: experts are copies of each other
#
# ### BEGIN ANSWER
# right: b
# a: It would be the best use. But each position's router only sees what is best *now*.
# b: Yes: an expert that is chosen more often trains more, and is chosen more often still. Left alone, the busiest expert of the first layer gets about ten to seventeen times the positions of the idlest (in the second layer two to four times). So one adds a loss that pulls towards an even load; with it the ratio stays below three.
# c: They start at different random weights and see different positions.
# ### END ANSWER

# %%
seed_everything(9)
experts = MixtureOfExperts(8, 32, n_experts=2)
toy = torch.randn(4, 8)
with torch.no_grad():
    weights, chosen = experts.choose(toy)
    by_loop = torch.stack([experts.experts[e](toy[i]) * weights[i, e] for i, e in enumerate(chosen.tolist())])
    claim("a loop, each word to its expert, equals the batched layer", torch.allclose(experts(toy), by_loop, atol=1e-6))
display(
    plots.table(
        [
            (word, *row, f"expert {e}")
            for word, row, e in zip(("the", "dog", "bites", "him"), weights.tolist(), chosen.tolist(), strict=True)
        ],
        header=("word", "router: expert 0", "router: expert 1", "goes to"),
        caption="The router is one matrix and a softmax; the largest weight wins",
        digits=2,
    )
)
names = ["ReLU, 4 times", "RMSNorm, ReLU", "SwiGLU, 8/3 times", "four experts", "four experts, load left alone"]
loads = {
    name: [max(layer) / min(layer) if min(layer) else math.inf for run in table["load"].get(name, []) for layer in run]
    for name in names
}
display(
    plots.table(
        [(*row, measured.spread(loads[row[0]], 1) if loads[row[0]] else None) for row in block_rows(names)],
        header=("block", "parameters", "nats a character, held out", "busiest expert / idlest"),
        caption="Authors' runs: two blocks, 32 features, 400 steps, three seeds; the last column over both layers",
    )
)
claim("the auxiliary loss evens the load out", max(loads["four experts"]) < max(loads["four experts, load left alone"]))

# %% [markdown]
# **What you see.** SwiGLU is better at the same number of parameters. RMSNorm makes no difference, and is cheaper. Four experts hold 2.7 times the parameters of the whole model and bring nothing yet: each of them sees only a part of these 400 steps.

# %% [markdown] written="06.W"
# **Explain in your own words** (about six sentences): what does each part of the block do, and what did the experiments show when it was missing? Why does the place of the norm matter?
#
# ### BEGIN GUIDE
# Full marks for these five points:
# 1. The feed-forward network gives each position a non-linear step of its own; values are otherwise mixed linearly; without it about 0.2 nats worse (1 point).
# 2. The residual lets the stream and the gradient pass unchanged; without it all positions become alike (cosine 1) although gradients are healthy (1 point).
# 3. The norm keeps the scale; without it the loss starts in the dozens or higher (1 point).
# 4. Pre-norm leaves the stream untouched and trains at every depth tried; post-norm norms the stream itself, fails at six blocks without warm-up and at twelve with (1 point).
# 5. A limit stated: short runs at one learning rate, small models; four post-norm blocks are fine (1 point).
# ### END GUIDE

# %% [markdown]
# ## Recap
#
# - A **Transformer block**: self-attention, **residual**, **layer norm**, **feed-forward network** on each position alone, residual, layer norm. A **Transformer** is a stack of them.
# - **Post-norm** norms the stream (2017), **pre-norm** what each sub-layer reads. Pre-norm trains at 4 to 24 blocks; post-norm needs **warm-up** at six.
# - Layers without residuals make all positions alike; a residual is the highway that keeps them apart.
# - **Encoder**: no causal mask. **Decoder**: causal mask, and **cross-attention** to the encoder. **Decoder-only**: a language model.
# - $12d^2$ parameters a block. Loss falls steadily with size.
# - **RMSNorm**, **SwiGLU**, **mixture of experts**: same block, other parts.
#
# **Sources.** Vaswani et al. 2017, *Attention is all you need* · Ba, Kiros and Hinton 2016, *Layer normalization* · Srivastava et al. 2014, *Dropout: a simple way to prevent neural networks from overfitting* · Hendrycks and Gimpel 2016, *Gaussian error linear units* · He et al. 2016, *Deep residual learning for image recognition* · Xiong et al. 2020, *On layer normalization in the Transformer architecture* · Dong, Cordonnier and Loukas 2021, *Attention is not all you need: pure
# attention loses rank doubly exponentially with depth* · Press and Wolf 2017, *Using the output embedding to improve language models* · Kaplan et al. 2020, *Scaling laws for neural language models* · Brown et al. 2020, *Language models are few-shot learners* · Zhang and Sennrich 2019, *Root mean square layer normalization* · Shazeer 2020, *GLU variants improve Transformer* · Fedus, Zoph and
# Shazeer 2022, *Switch Transformers* · Text: Python's manual (Python Software Foundation License); dates: CLDR through Babel.

# %% [markdown]
# ### Your questions so far

# %% questions="06"
