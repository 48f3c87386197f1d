# Lesson 05. Maintainers: this text is the only hand-written form of the notebook; `course build` makes the rest.

# %% [markdown]
# # 05 Multi-head attention: several questions at once, and what it costs
#
# **The question.** *Can one softmax look at two places?*
#
# One attention head makes one distribution over the words. Its output is one weighted mean. But to understand "the old dog bites the small cat" one would like to know the biter *and* the bitten, the adjective, the word
# before. Then the bill for attention as such: what does it cost beside an RNN and a CNN, and what can be done about it?
#
# **You will be able to**
# - write multi-head attention with batched matrix products, and find the two places where it goes wrong silently;
# - say what heads cost, and find out what single heads do;
# - compare RNN, CNN and attention by steps and path length (counted), memory and time (measured); and compute attention exactly with little memory.
#
# **You should know** notebooks 03 and 04. **Time** about two hours; running every cell takes about three quarters of a minute.

# %%
try:
    from course_utils import answer, check, claim, question_points, setup, use
except ModuleNotFoundError as missing:
    raise ImportError(
        f"This kernel lacks {missing.name}. Start JupyterLab with `python3 course.py lab` (Windows: `py -3 course.py lab`) "
        "from the course folder, or in an editor, choose the Python in the course's .venv as the kernel."
    ) from None

setup("05")

import math

import torch
from IPython.display import display
from torch import nn

from course_utils import experiments, measured, multihead, plots, widgets
from course_utils.attention import scaled_dot_product_attention
from course_utils.data import roles
from course_utils.data.text import python_manual
from course_utils.masks import causal_mask, window_mask
from course_utils.multihead import FusedMultiHeadAttention, blockwise_attention
from course_utils.role_models import MultiHeadReader
from course_utils.training import n_parameters, seed_everything
from course_utils.transformer import LanguageModel

# %% [markdown]
# ## 1 One head, two questions
#
# In notebook 03 one head found the biter. Now ask for biter **and** bitten, both read from the *same* vector. One head must put its weight on both nouns at once, and its output is their weighted mean.

# %% [markdown] question="05.1"
# **Predict.** The values are linear maps of word + position. A head puts weight 1/2 on "dog" and 1/2 on "cat". Can what follows tell from its output who bites whom?
#
# - a) no: swapping the two words gives exactly the same output
# - b) yes: the values carry the position, so "dog in first place" is another vector than "dog in last place"
# - c) yes: a mean keeps all the information
#
# ### BEGIN ANSWER
# right: a
# a: Yes. $\frac12 (e_{dog} + p_2) W + \frac12 (e_{cat} + p_5) W$ is a sum of four terms; swapping the words only reorders it. *Unequal* weights can carry the order, and that is hard to learn for two roles at once.
# b: Each value does change. Their *sum* does not: word and place are added, so which word had which place is lost.
# c: Many pairs of vectors have the same mean.
# ### END ANSWER

# %%
seed_everything(0)
dog, cat, first, second = torch.randn(4, 32)
W = torch.randn(32, 32)


def mixed(first_noun, second_noun, weight):
    """The head's output when it puts `weight` on the first noun and the rest on the second."""
    return (weight * (first_noun + first) + (1 - weight) * (second_noun + second)) @ W


def difference(weight):
    return (mixed(dog, cat, weight) - mixed(cat, dog, weight)).abs().max()


claim("with equal weights, swapping the nouns changes nothing", difference(0.5) < 1e-4)
claim("with weights 0.7 and 0.3 it does", difference(0.7) > 1)

# %% [markdown] question="05.2"
# **Predict.** Same width, same number of parameters, same training. How does the share of sentences in which *both* roles are right depend on the number of heads?
#
# - a) it does not: the parameters are the same
# - b) it jumps from one head to two, and is near 1 from there on
# - c) it falls: smaller heads see less
#
# ### BEGIN ANSWER
# right: b
# a: The parameters are the same, but one softmax makes one mean, two softmaxes make two.
# b: Yes: the second head can look at the second noun, and what follows gets both vectors side by side.
# c: A head of 8 features is narrower, but finding "the noun before the verb" does not take many features.
# ### END ANSWER

# %% [markdown]
# Before we run it: how heads work. Split the $d$ features of $Q$, $K$ and $V$ into $h$ slices of $d/h$. Attend in every slice on its own. Put the outputs behind one another and mix them once more:
#
# $$
# \begin{aligned}
# \text{head}_i &= \operatorname{Attention}(Q_i, K_i, V_i) && Q_i, K_i, V_i \in \mathbb{R}^{T \times d/h} \text{ (slice } i \text{ of } XW_Q, XW_K, XW_V) \\
# \operatorname{MultiHead}(X) &= [\text{head}_1; \dots; \text{head}_h]\, W_O && W_O \in \mathbb{R}^{d \times d}
# \end{aligned}
# $$
#
# Every head has its own matrices: slice $i$ of the columns of $W_Q$, $W_K$ and $W_V$ belongs to head $i$ alone. Toy numbers: three words, four features, two heads.

# %%
words = ["dog", "bites", "man"]
q = torch.tensor([[0.0, 0.0, 2.0, 0.0], [2.0, 0.0, 0.0, 2.0], [0.0, 0.0, 0.0, 0.0]])
k = torch.tensor([[1.5, 0.0, 0.0, 0.0], [0.0, 0.0, 1.5, 0.0], [0.0, 1.5, 0.0, 1.5]])
v = torch.tensor([[1.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 1.0]])

rows = []
for h in range(2):  # one head after the other, on its slice of the features
    part = slice(2 * h, 2 * h + 2)
    _, weights = scaled_dot_product_attention(q[:, part], k[:, part], v[:, part])
    rows += [(f"head {h + 1}", word, *w) for word, w in zip(words, weights.tolist(), strict=True)]


display(
    plots.table(
        rows,
        header=("", "query", *(f"weight on {w}" for w in words)),
        caption="Two heads, two distributions for each word: for 'bites', one finds the dog, the other the man",
        digits=2,
    )
)

# %% [markdown]
# Now all heads at once. Heads become a batch axis: `view` gives every word its slices, and a **transpose** brings heads to the front. With `view` alone a head would get pieces of *different words*; the shapes would fit, the loss would fall, and nobody
# would notice. The same on the way back.


# %% exercise="MultiHeadAttention" minutes=30 difficulty=3
class MultiHeadAttention(nn.Module):
    """n_heads attentions on d_model / n_heads features each, concatenated and mixed by W_o.

    forward(x_q (B, Tq, d_model), x_kv=None, mask=None) -> (B, Tq, d_model); keys and values come from x_kv, or from x_q if it is None.
    mask (Tq, Tk), (B, Tq, Tk) or (B, 1, Tq, Tk), True = may attend. W_q, W_k, W_v, W_o are nn.Linear(d_model, d_model).
    """

    def __init__(self, d_model, n_heads):
        super().__init__()
        ### BEGIN SOLUTION
        if d_model % n_heads:
            raise ValueError(f"n_heads ({n_heads}) must divide d_model ({d_model})")
        self.n_heads = n_heads
        self.W_q = nn.Linear(d_model, d_model)
        self.W_k = nn.Linear(d_model, d_model)
        self.W_v = nn.Linear(d_model, d_model)
        self.W_o = nn.Linear(d_model, d_model)
        ### END SOLUTION

    def forward(self, x_q, x_kv=None, mask=None):
        ### BEGIN SOLUTION
        x_kv = x_q if x_kv is None else x_kv
        B, Tq, d_model = x_q.shape
        d_head = d_model // self.n_heads
        q = self.W_q(x_q).view(B, Tq, self.n_heads, d_head).transpose(1, 2)  # (B, h, Tq, d/h)
        k = self.W_k(x_kv).view(B, -1, self.n_heads, d_head).transpose(1, 2)
        v = self.W_v(x_kv).view(B, -1, self.n_heads, d_head).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(d_head)
        if mask is not None:
            if mask.dim() == 3:
                mask = mask.unsqueeze(1)
            scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        out = scores.softmax(dim=-1) @ v
        return self.W_o(out.transpose(1, 2).reshape(B, Tq, d_model))
        ### END SOLUTION


# %% [markdown] hints="MultiHeadAttention"
# 1. Write down the shape after every line. Where do heads have to stand so that `@` treats them like a batch? A mask for each sentence has three axes, scores have four: where does the new axis go?
# 2. Split: `(B, T, d)` to `(B, T, h, d/h)` by `view`, then swap T and h. Merge: swap back *first*, then `reshape`. Scores are divided by the square root of the *head's* size.
# 3. `q = self.W_q(x_q).view(B, Tq, h, d_head).transpose(1, 2)`, the same for k and v; attention; `self.W_o(out.transpose(1, 2).reshape(B, Tq, d_model))`.

# %%
attention = use(MultiHeadAttention)
plain = multihead.MultiHeadAttention(4, 2)  # the toy again: projections that change nothing, so that q = k = v = x
layer = attention(4, 2)
with torch.no_grad():
    for linear in (plain.W_q, plain.W_k, plain.W_v, plain.W_o):
        linear.weight.copy_(torch.eye(4)), linear.bias.zero_()
    slices = [scaled_dot_product_attention(*(3 * [k[:, 2 * h : 2 * h + 2]]))[0] for h in range(2)]
    if experiments.adopt(layer, plain):  # not if your layer keeps its weights in a form of its own
        claim(
            "your batched heads equal the loop over slices",
            torch.allclose(layer(k.unsqueeze(0))[0], torch.cat(slices, dim=-1), atol=1e-6),
        )

# %%
both, parameters = {}, {}
for name, shape in (
    ("1 head", {"n_heads": 1}),
    ("2 heads", {"n_heads": 2}),
    ("4 heads", {"n_heads": 4}),
    ("1 head, two layers", {"n_heads": 1, "n_layers": 2}),
):
    reader, both[name] = experiments.train_role_reader(
        lambda: MultiHeadReader(**shape, attention=attention), label=name
    )
    parameters[name] = n_parameters(reader)
full = measured.load("heads")
display(
    plots.table(
        [
            (
                name,
                full["parameters"][name],
                both.get(name),
                *(measured.spread([run[i] for run in runs]) for i in range(3)),
            )
            for name, runs in full["accuracy"].items()
        ],
        header=("model", "parameters", "both, this run", "authors: both", "authors: biter", "authors: bitten"),
        caption="Biter and bitten, read from one vector (600 steps, new pairs of nouns; authors: eight seeds, lowest … highest)",
        digits=2,
    )
)
claim(
    "one, two and four heads have the same number of parameters",
    len({parameters[f"{n} head{'s' * (n > 1)}"] for n in (1, 2, 4)}) == 1,
)
claim("four heads get both roles right in at least 0.9 of the sentences", both["4 heads"] >= 0.9)
claim("two heads are at least 0.1 better than one", both["2 heads"] - both["1 head"] >= 0.1)

# %% [markdown]
# **What you see.** At the same number of parameters, two heads beat one by far, and four are more reliable still. Look at the single head's columns: on some seeds it reads *one* of the two nouns perfectly and never the other (both: 0), on others a bit of both (about 0.6). A head that is
# four times as *wide* does no better: the trouble is not room, it is that one softmax gives one weighted mean. **What you might wrongly conclude:** "one head can never do it." Two *layers* of one head each manage as well: the second can ask about what the first has found. So the claim is about **one layer**.
#
# ## 2 What do the heads do?
#
# Each head of the trained reader has its own weights. Two questions to each: how much of its attention goes to the biter and to the bitten, and what is lost when we take its output away?

# %% [markdown] question="05.3"
# **Predict.** In the reader with four heads, each head is switched off in turn. What happens?
#
# - a) all four losses are about equal: the heads share the work evenly
# - b) they matter unequally, and mostly for one role each
# - c) nothing: three heads can replace the fourth
#
# ### BEGIN ANSWER
# right: b
# a: Nothing forces an even split. Each head drifts to where it is useful.
# b: Yes: heads specialise, without anyone asking for it.
# c: Not without training again: what follows has learned to rely on this head.
# ### END ANSWER

# %%
seed_everything(0)
# The course's own layer here: it keeps the weights of its last call for us to look at.
reader, _ = experiments.train_role_reader(lambda: MultiHeadReader(n_heads=4), label="4 heads, to look inside")
_, test_set = roles.role_data(seed=0)
focus = experiments.head_focus(reader, test_set)
with torch.no_grad():
    right = (reader(test_set.tokens).argmax(dim=-1) == test_set.roles).double().mean(dim=0).tolist()
lost = [
    [full_share - share for full_share, share in zip(right, experiments.without_head(reader, h, test_set), strict=True)]
    for h in range(4)
]
display(
    plots.table(
        [(f"head {h + 1}", *focus[h].tolist(), *lost[h]) for h in range(4)],
        header=(
            "",
            "weight on the biter",
            "weight on the bitten",
            "biter: accuracy lost without it",
            "bitten: accuracy lost without it",
        ),
        caption="What each head looks at, and what its absence costs (2,000 new sentences)",
        digits=2,
    )
)
sentence = "the old dog bites the small cat"
with torch.no_grad():
    reader(roles.encode(sentence).unsqueeze(0))
display(
    plots.heatmap(
        reader.layers[0].weights[0, :, 0],
        queries=[f"head {h + 1}" for h in range(4)],
        keys=["<cls>", *sentence.split()],
        title="One sentence, four heads",
        query_label="head (reading position)",
        key_label="key (word)",
    )
)
worst = max(max(row) for row in lost)
least = min(max(row) for row in lost)
claim("without its most important head the reader loses at least 0.3 in one role", worst >= 0.3)
claim("heads matter unequally: the most important costs at least 0.1 more than the least", worst - least >= 0.1)

# %% [markdown]
# The same four heads as a grid: mark a query, take a head out, and put the heads in order of what their absence costs. This time the cost is the rise of the *loss* over the 2,000 test sentences, in nats. (The grid counts from 0: L0 H0, layer 0 and head 0, is head 1 of the table. The answer is read from the
# output of `<cls>`, so of every head only that row matters here.)

# %%
all_heads = experiments.role_loss(reader, test_set)
without = [experiments.role_loss(reader, test_set, without=h) for h in range(4)]
names = ["<cls>", *sentence.split()]
with torch.no_grad():
    reader(roles.encode(sentence).unsqueeze(0))  # keeps the weights of this sentence
heads = widgets.HeadsGrid(
    reader.layers[0].weights[0],
    names,
    losses=without,
    loss=all_heads,
    predict=(
        "Take out the head that is needed least. How much does the loss rise, compared with the loss of all heads together?",
        ["by a few per cent of it", "by about as much again", "by several times as much"],
    ),
)
heads

# %%
rise = [value - all_heads for value in without]
display(
    heads.compare(
        "c" if min(rise) > 2 * all_heads else "b" if min(rise) > all_heads / 2 else "a",
        f"With all heads it is {all_heads:.2g} nats; without L0 H0 to L0 H3 it rises by {', '.join(f'{r:.2g}' for r in rise)}. "
        "Training has come to rely on every head, and nobody asked them to share the work evenly.",
    )
)
claim("the dearest head costs at least twice as much loss as the cheapest", max(rise) >= 2 * min(rise))

# %% [markdown]
# **What you see.** The heads divide the places among themselves, and unevenly. Where a head looks and what it is good for mostly go together; when they do not, believe the second. (What a head *reads* is evidence, what its
# absence *costs* is a test: the lesson of notebook 02.)
#
# ## 3 What do heads cost?
#
# $h$ heads of size $d/h$ need the same matrices as one head of size $d$. The multiplications, for $T$ queries and $T$ keys:
#
# $$
# \begin{aligned}
# \underbrace{4\,T d^2}_{\text{projections } W_Q, W_K, W_V, W_O} + \underbrace{h \cdot 2\,T^2 \tfrac{d}{h}}_{\text{scores and mixing}} &= 4\,T d^2 + 2\,T^2 d
# && \text{the } h \text{ cancels.}
# \end{aligned}
# $$

# %% [markdown] question="05.4"
# **Compute.** At which length $T$ do scores and mixing, $2T^2d$, cost as much as the four projections, $4Td^2$, for $d = 512$?
#
# ### BEGIN ANSWER
# right: 1024
# tolerance: 0.5
# explain: 2 T² d = 4 T d² gives T = 2 d = 1,024. Below that length the projections dominate, above it the part that grows with T².
# ### END ANSWER

# %%
seed_everything(0)
x = torch.randn(8, 64, 64)
layers = {h: FusedMultiHeadAttention(64, h) for h in (1, 2, 4, 8)}
loop = experiments.HeadsInALoop(layers[8])
with torch.no_grad():
    claim(
        "eight heads in a loop, and in one batched product, agree to 1e-5",
        torch.allclose(loop(x), layers[8](x), atol=1e-5),
    )
    base = experiments.median_seconds(lambda: layers[1](x), 30)
    rows = [
        (
            f"{h} head{'s' * (h > 1)}",
            n_parameters(layers[h]),
            experiments.median_seconds(lambda: layers[h](x), 30) / base,
        )
        for h in layers
    ]
    rows.append(
        ("8 heads in a Python loop", n_parameters(layers[8]), experiments.median_seconds(lambda: loop(x), 30) / base)
    )
display(
    plots.table(
        rows,
        header=("", "parameters", "time, as a multiple of one head"),
        caption="Batch of 8, 64 positions, 64 features, one CPU core",
        digits=2,
    )
)

# %% [markdown]
# **What you see.** Equal: parameters and multiplications, "about the same as one big head", as the lecture says. Not equal: there are $hT^2$ weights instead of $T^2$, so more exponentials and more memory for them, and many narrow products are less efficient than a wide one. Time rises with many narrow heads.
# A Python loop over heads costs several times as much: that is why heads are a batch axis.
#
# Turn the knobs: length, width, heads, batch, a window that each position sees. The diamonds are the times of the layer with eight heads on *your* machine, beside the count of its multiplications.

# %%
with torch.no_grad():
    inputs = {T: torch.randn(1, T, 64) for T in (128, 256, 512, 1024)}
    timings = [(T, experiments.median_seconds(lambda: layers[8](x), 5)) for T, x in inputs.items()]
cost = widgets.CostCalculator(
    512,
    64,
    8,
    timings=timings,
    predict=(
        "d = 64. The length grows eightfold, from 128 to 1,024. How many times as many multiply-adds does the layer need, "
        "projections, scores and mixing together?",
        ["8 times", "36 times", "64 times"],
    ),
)
cost

# %%
count = {T: (4 * T * 64**2, 2 * T**2 * 64) for T in (128, 1024)}  # projections; scores and mixing
display(
    cost.compare(
        "b",
        "At T = 128 = 2d both parts are equal. One grows eightfold, the other 64-fold: together (8 + 64) / 2 = 36. "
        f"(Your machine took about {timings[-1][1] / timings[0][1]:.0f} times as long.)",
    )
)
claim("scores and mixing cost as much as the projections at T = 2d", count[128][0] == count[128][1])
claim("from T = 128 to 1,024 their sum grows 36-fold", sum(count[1024]) == 36 * sum(count[128]))

# %% [markdown]
# ## 4 RNN, CNN, attention
#
# Three ways to let positions talk to each other. What does each cost when the sequence grows?

# %% [markdown] question="05.5"
# **Predict.** The sequence becomes twice as long. How does the memory for the results in between grow?
#
# - a) RNN and CNN: twofold; attention: fourfold
# - b) all three: twofold
# - c) RNN: not at all; CNN: twofold; attention: twofold
#
# ### BEGIN ANSWER
# right: a
# a: Yes: attention keeps a weight for every pair of positions.
# b: Count the attention weights: one for each query *and* key.
# c: An RNN keeps a state for each position, if something is to be read there. And attention keeps a weight for each *pair*.
# ### END ANSWER

# %%
lengths = (256, 512, 1024, 2048)
seed_everything(0)
kinds = {
    "LSTM": experiments.LAYERS["LSTM"](64),
    "dilated CNN": experiments.LAYERS["dilated CNN"](64),
    "attention": lambda x: scaled_dot_product_attention(x, x, x)[0],
    "attention, blockwise": lambda x: blockwise_attention(x, x, x, block=64),
}
memory, seconds = {}, {}
with torch.no_grad():
    for name, layer in kinds.items():
        inputs = [torch.randn(1, T, 64) for T in lengths]
        memory[name] = [experiments.peak_bytes(lambda: layer(x)) for x in inputs]
        seconds[name] = [experiments.median_seconds(lambda: layer(x), 3) for x in inputs]
grows = {name: experiments.exponent(lengths, values) for name, values in memory.items()}
display(
    plots.table(
        [
            (name, *(b / 2**20 for b in values), grows[name], experiments.exponent(lengths, seconds[name]))
            for name, values in memory.items()
        ],
        header=("", *(f"T = {T}, MiB" for T in lengths), "memory ~ T to the", "time ~ T to the"),
        caption="Peak memory of one forward pass (64 features), and how memory and time grow",
        digits=2,
    )
)
recalled = {
    name: measured.spread([run[2] for run in runs]) for name, runs in measured.load("recall")["accuracy"].items()
}
display(
    plots.table(
        [
            (
                "RNN (LSTM)",
                "sequence (one dimension)",
                "T",
                "k",
                recalled["LSTM"],
            ),
            (
                "CNN",
                "grid (any dimension)",
                "layers",
                "log k with dilation, k without",
                recalled["dilated CNN"],
            ),
            (
                "self-attention",
                "set",
                "1",
                "1",
                recalled["attention"],
            ),
        ],
        header=(
            "",
            "works on",
            "steps that wait",
            "path between words k apart",
            "recall over 20 symbols (chance 0.125)",
        ),
        caption="The comparison of the lecture, with the measurement from notebook 01",
    )
)
claim("the memory of attention grows with a power of at least 1.8", grows["attention"] >= 1.8)
claim("computed in blocks, with a power of at most 1.2", grows["attention, blockwise"] <= 1.2)

# %% [markdown]
# **What you see.** Attention buys its short path with $T^2$ weights: at 2,048 positions one small head holds about 32 MiB (two tables, scores and weights). That is **the catch** of self-attention, and why long contexts are expensive. A CNN gets far only with large kernels or many layers,
# but works on grids of any dimension (notebook 07).
#
# The lecture's "naturally generalises to long sequences" needs care, too. The operator takes any length. Whether a *trained model* does, you have seen twice: the translator of notebook 02 failed beyond six dates, and most positions of notebook 03 broke beyond their training length.
#
# ## 5 The same result with less memory
#
# The last row of the table is *exact* attention that never stores the $T \times T$ weights. The trick: a softmax needs the maximum and the sum of a row, and both can be kept **running** while keys arrive in blocks.
#
# $$
# \begin{aligned}
# m' &= \max(m, \max_j s_j), \quad
# \ell' = e^{m - m'}\, \ell + \sum_j e^{s_j - m'}, \quad
# o' = e^{m - m'}\, o + \sum_j e^{s_j - m'} v_j
# && \text{output } o / \ell
# \end{aligned}
# $$
#
# When a new block raises the maximum, what has been summed so far is scaled down, and nothing is lost.

# %%
scores, values = [2.0, 1.0, 5.0, 3.0], [1.0, 2.0, 3.0, 4.0]
m, total, out, rows = -math.inf, 0.0, 0.0, []
for block in ((0, 1), (2, 3)):
    new = max(m, *(scores[j] for j in block))
    keep = math.exp(m - new)
    total = total * keep + sum(math.exp(scores[j] - new) for j in block)
    out = out * keep + sum(math.exp(scores[j] - new) * values[j] for j in block)
    m = new
    rows.append((f"keys {block[0]} and {block[1]}", m, keep, total, out, out / total))
display(
    plots.table(
        rows,
        header=("after", "maximum", "old part times", "sum", "output so far", "output / sum"),
        caption="A softmax in two blocks: scores 2, 1, 5, 3 and values 1, 2, 3, 4",
        digits=3,
    )
)
direct = sum(math.exp(s) * v for s, v in zip(scores, values, strict=True)) / sum(math.exp(s) for s in scores)
claim("two blocks give the softmax over all four", math.isclose(rows[-1][-1], direct))

q, k, v = (torch.randn(2, 4, 300, 16) for _ in range(3))
whole = scaled_dot_product_attention(q, k, v)[0]
blocks = blockwise_attention(q, k, v, block=64)
claim(
    "blockwise attention equals full attention (relative difference below 1e-6)",
    ((blocks - whole).norm() / whole.norm()).item() < 1e-6,
)
whole = scaled_dot_product_attention(q, k, v, causal_mask(300))[0]
blocks = blockwise_attention(q, k, v, block=64, causal=True)
claim("with a causal mask, too", ((blocks - whole).norm() / whole.norm()).item() < 1e-6)

# %% [markdown]
# Another way out is to look less far. A **sliding window** lets each position see the last $w$ only: cost $T \cdot w$ instead of $T^2$ (if the hidden scores are not even computed; a mask alone saves nothing). Information still travels, one window per layer, as in a CNN.

# %%
window = window_mask(16, 4)
display(
    plots.heatmap(
        window.float(),
        queries=[str(i) for i in range(16)],
        keys=[str(j) for j in range(16)],
        title="A sliding window of four",
        description="Heatmap: each position may attend to itself and the three before it.",
        query_label="query position",
        key_label="key position",
        value_label="may attend (1)",
    )
)
reach = torch.eye(16, dtype=torch.bool)
for _ in range(3):
    reach = (reach.float() @ window.float().T > 0) | reach
claim("three layers of window 4 reach 9 positions back, not the whole past", int(reach[0].nonzero().max()) == 9)

# %% [markdown]
# ### Generating with a cache
#
# While a decoder writes, the keys and values of the old words do not change: no later word can reach back to them through a causal mask. Keep them (**key–value cache**), and each new word costs one row instead of the whole triangle.

# %% [markdown] question="05.6"
# **Predict.** A model writes 200 characters, once reading everything anew for each, once with a cache. The outputs ...
#
# - a) are equal, and the cache is faster
# - b) differ slightly, because the cache is an approximation
# - c) are equal, and the cache needs less memory
#
# ### BEGIN ANSWER
# right: a
# a: Yes. It trades memory for time.
# b: Nothing is approximated: the same numbers are kept instead of computed again.
# c: The cache itself takes memory: two vectors for each position, head and layer.
# ### END ANSWER

# %%
manual = python_manual()
seed_everything(0)
model = LanguageModel(len(manual.alphabet), block_size=256).eval()
start = manual.encode("The ").unsqueeze(0)
with torch.no_grad():
    everything = model(manual.test[:100].unsqueeze(0))
    caches = model.new_caches()
    in_pieces = torch.cat([model(manual.test[i : i + 20].unsqueeze(0), caches) for i in range(0, 100, 20)], dim=1)
claim("logits with the cache equal those without (1e-5)", torch.allclose(everything, in_pieces, atol=1e-5))
slow = experiments.median_seconds(lambda: experiments.generate_greedily(model, start, 200, cached=False), 3)
fast = experiments.median_seconds(lambda: experiments.generate_greedily(model, start, 200, cached=True), 3)
print(f"200 characters: {slow / fast:.1f} times as fast with the cache")

# %% [markdown] written="05.W"
# **Explain in your own words** (about five sentences): what can two heads do that one cannot, why do they cost no extra parameters, and what is the price of attention compared with an RNN?
#
# ### BEGIN GUIDE
# Full marks for these four points:
# 1. One softmax makes one weighted mean; two heads make two, so two places can be read separately in one layer (2 points).
# 2. Each head works on $d/h$ features: parameters and multiplications are the same, the $h$ cancels; the weights do become $h T^2$ (1 point).
# 3. Attention holds and computes $T^2$ weights (measured power about 2), an RNN grows with $T$; in return the path is 1 and nothing waits (1 point).
# 4. A limit stated: two layers of one head also solve the task; a wider single head does not; or a way around $T^2$ (1 point).
# ### END GUIDE

# %% [markdown]
# ## Recap
#
# - **Multi-head attention**: $h$ attentions on $d/h$ features each, **concatenated** and **projected**. Split with view *and* transpose; merge with transpose *and* reshape.
# - Two roles need two heads (in one layer). Heads specialise; an ablation says how much each is worth.
# - Heads cost no parameters and no multiplications: one batched matrix product. They do cost $hT^2$ weights.
# - RNN: one-dimensional, steps wait, path $k$. CNN: grids, parallel, far only with many layers. Self-attention: sets, parallel, path 1, **cost $T^2$**.
# - Cheaper: **blockwise attention** is exact and saves memory, not operations; a **key–value cache** is exact and saves operations in generation; **sliding windows** are another, local attention.
#
# **Sources.** Vaswani et al. 2017, *Attention is all you need*, sections 3.2.2 and 4 · Michel, Levy and Neubig 2019, *Are sixteen heads really better than one?* · Milakov and Gimelshein 2018, *Online normalizer calculation for softmax* · Rabe and Staats 2021, *Self-attention does
# not need O(n²) memory* · Dao et al. 2022, *FlashAttention* · Beltagy, Peters and Cohan 2020, *Longformer* (sliding windows).

# %% [markdown]
# ### Your questions so far

# %% questions="05"
