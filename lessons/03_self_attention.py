# Lesson 03. Maintainers: this text is the only hand-written form of the notebook; `course build` makes the rest.

# %% [markdown]
# # 03 Self-attention: every word asks every word
#
# **The question.** *What happens when queries, keys and values come from the same sequence?*
#
# In notebook 02 a decoder asked and an encoder answered. The encoder was still an RNN, with all its limits: influence that has to walk
# word by word, steps that wait for each other. What if we drop the recurrence altogether, and let every word ask every other word?
#
# **You will be able to**
# - write self-attention and say what each of its three matrices does;
# - say what it makes of the order of words, and tell it the order in three ways: sinusoids, learned vectors, rotations;
# - say what each of these does on sequences longer than those seen in training.
#
# **You should know** notebook 02: queries, keys, values, scaled dot product.
# **Time** about two hours; running every cell takes about half a minute.

# %%
try:
    from course_utils import answer, check, claim, question_points, setup, use
except ModuleNotFoundError as missing:
    raise ImportError(
        f"This kernel lacks {missing.name}. Start JupyterLab with `python3 course.py lab` (Windows: `py -3 course.py lab`) "
        "from the course folder, or in an editor, choose the Python in the course's .venv as the kernel."
    ) from None

setup("03")

import math

import torch
import torch.nn.functional as F
from IPython.display import display
from torch import nn

from course_utils import experiments, measured, plots, widgets
from course_utils.data import roles
from course_utils.data.text import python_manual
from course_utils.positions import alibi_bias
from course_utils.role_models import SingleHeadReader
from course_utils.training import seed_everything

# %% [markdown]
# ## 1 Queries, keys and values from one sequence
#
# Each word vector $x_i$ is turned into three others by three learned matrices. The **query** says what the word is looking for, the **key** what it offers to
# be found by, the **value** what it hands over when it is found.
#
# $$
# \begin{aligned}
# Q &= X W_Q, \quad K = X W_K, \quad V = X W_V
# && X \in \mathbb{R}^{T \times d_{\text{in}}},\; W_Q, W_K \in \mathbb{R}^{d_{\text{in}} \times d},\; W_V \in \mathbb{R}^{d_{\text{in}} \times d_v} \\
# \operatorname{SelfAttention}(X) &= \operatorname{softmax}\!\left(\frac{Q K^{\top}}{\sqrt{d}}\right) V
# && \text{weights} \in \mathbb{R}^{T \times T},\; \text{output} \in \mathbb{R}^{T \times d_v}
# \end{aligned}
# $$
#
# (Some texts write $q_i = W^Q x_i$ for column vectors. It is the same map with the matrix transposed.)
#
# Toy numbers, the word beside each row. The weights are chosen so that verbs look for nouns.

# %%
words = ["dog", "bites", "man"]
X = torch.tensor([[1.0, 0.0, 0.2], [0.0, 1.0, 0.0], [1.0, 0.0, -0.2]])  # (T, d_in): noun-ness, verb-ness, which noun
W_q = torch.tensor([[0.0, 1.0], [3.0, 0.0], [0.0, 0.0]])  # a verb asks along the first axis, a noun along the second
W_k = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])  # nouns are found along the first axis, verbs along the second
W_v = torch.tensor([[0.0], [0.0], [1.0]])  # handed over: which noun it is


def times(row, matrix):  # a row vector times a matrix, number by number
    return [sum(x * w for x, w in zip(row, column, strict=True)) for column in matrix.T.tolist()]


q, k, v = ([times(row, W) for row in X.tolist()] for W in (W_q, W_k, W_v))
by_hand, outputs = [], []
for i in range(3):  # one query at a time
    scores = [sum(a * b for a, b in zip(q[i], k[j], strict=True)) / math.sqrt(2) for j in range(3)]
    total = sum(math.exp(score) for score in scores)
    by_hand.append([math.exp(score) / total for score in scores])
    outputs.append([sum(by_hand[i][j] * v[j][0] for j in range(3))])
display(
    plots.table(
        [(word, *q[i], *k[i], *v[i], *by_hand[i], *outputs[i]) for i, word in enumerate(words)],
        header=("word", "q[0]", "q[1]", "k[0]", "k[1]", "v", *(f"looks at {w}" for w in words), "output"),
        caption="Three words, their queries, keys and values, the weights of each row, and the output",
        digits=2,
    )
)

# %% [markdown]
# Read it row by row: "bites" looks at "dog" and "man", equally. (Which of the two bites, it cannot tell: remember that.) Now for any sequence, and
# any number of leading axes.


# %% exercise="self_attention" minutes=10 difficulty=1
def self_attention(x, W_q, W_k, W_v, mask=None):
    """Queries, keys and values from the same sequence.

    x (..., T, d_in), W_q and W_k (d_in, d), W_v (d_in, dv); mask broadcasts to (..., T, T), True = may attend.
    Returns the outputs (..., T, dv) and the weights (..., T, T), whose rows sum to one.
    """
    ### BEGIN SOLUTION
    q, k, v = x @ W_q, x @ W_k, x @ W_v
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = scores.softmax(dim=-1)
    return weights @ v, weights
    ### END SOLUTION


# %% [markdown] hints="self_attention"
# 1. You have written attention of queries, keys and values. Where do the three come from now?
# 2. Project first, then the scaled dot product. By the square root of which size are scores divided: that of `x`, or that of the queries?
# 3. `q, k, v = x @ W_q, x @ W_k, x @ W_v`, then `scaled_dot_product_attention(q, k, v, mask)` from notebook 02, or its four lines.

# %%
attend = use(self_attention)
out, attended = attend(X, W_q, W_k, W_v)
claim("your function gives the weights of the table", torch.allclose(attended, torch.tensor(by_hand), atol=1e-6))
claim("and its outputs", torch.allclose(out, torch.tensor(outputs), atol=1e-6))
claim(
    "on a batch of four it gives the same four times",
    torch.allclose(attend(X.expand(4, 3, 3), W_q, W_k, W_v)[0], out.expand(4, 3, 1)),
)

# %% [markdown]
# ## 2 How far does one layer reach?
#
# In an RNN the first word reaches the last one after $T - 1$ steps. How far does information travel in **one** layer of self-attention?

# %% [markdown] question="03.1"
# **Predict.** One layer, a sequence of 12 positions. For which pairs (output $i$, input $j$) does the output depend on the input?
#
# - a) attention: all pairs; a convolution of width 3: neighbours; an RNN: $j \le i$
# - b) attention: neighbours; a convolution: all pairs; an RNN: all pairs
# - c) all three: all pairs
#
# ### BEGIN ANSWER
# right: a
# a: Yes. The RNN does reach far to the left, but through a chain of steps, and it never sees what comes later.
# b: A convolution of width 3 adds up three neighbours. Attention takes a weighted mean over *all* keys.
# c: An RNN has not read the words to the right of a position when it makes the state there.
# ### END ANSWER

# %%
seed_everything(0)
T, d = 12, 8
weights_of = [torch.randn(d, d) * d**-0.5 for _ in range(3)]
convolution, rnn = nn.Conv1d(d, d, 3, padding=1), nn.RNN(d, d, batch_first=True)
layers = {
    "self-attention": lambda x: attend(x, *weights_of)[0],
    "convolution, width 3": lambda x: convolution(x.T.unsqueeze(0))[0].T,
    "RNN": lambda x: rnn(x.unsqueeze(0))[0][0],
}
x = torch.randn(T, d)
reach = {}
for name, layer in layers.items():
    jacobian = torch.autograd.functional.jacobian(layer, x)  # (T, d, T, d): every output by every input
    reach[name] = jacobian.norm(dim=(1, 3)) > 0
    display(
        plots.heatmap(
            reach[name].float(),
            queries=[str(i) for i in range(T)],
            keys=[str(j) for j in range(T)],
            title=f"{name}: which input reaches which output?",
            query_label="output position",
            key_label="input position",
            value_label="depends (1) or not (0)",
            description=f"Heatmap, {name}: each of 12 outputs depends on {reach[name].sum(dim=1).min()} to "
            f"{reach[name].sum(dim=1).max()} of 12 inputs.",
        )
    )
claim("self-attention: every output depends on every input", bool(reach["self-attention"].all()))
claim(
    "convolution: an output depends on at most three inputs", int(reach["convolution, width 3"].sum(dim=1).max()) == 3
)
claim("RNN: no output depends on a later input", not bool(reach["RNN"].triu(1).any()))

# %% [markdown]
# **What you see.** Any two words interact directly, however far apart. That is the short path that kept the line flat in section 3 of notebook 01, and
# the whole sentence is one matrix product: nothing waits.
#
# ## 3 Shuffle the words
#
# Shuffle the words of the input. What happens to the output?

# %% [markdown] question="03.2"
# **Predict.** $P$ shuffles the rows of $X$. For random weights, how do $f(PX)$ and $f(X)$ compare, where $f$ is self-attention?
#
# - a) $f(PX) = f(X)$: the output does not change at all
# - b) $f(PX) = P f(X)$: the same rows, shuffled in the same way
# - c) they have nothing to do with each other
#
# ### BEGIN ANSWER
# right: b
# a: That would be *invariance*. The output still has one row for each word, and the rows move with their words.
# b: Yes, for *any* weights. It is called **permutation equivariance**.
# c: Follow one word: its query meets the same set of keys as before, in another order, and a weighted sum does not care about order.
# ### END ANSWER

# %%
seed_everything(0)
X64 = torch.randn(9, 16, dtype=torch.float64)
W64 = [torch.randn(16, 16, dtype=torch.float64) for _ in range(3)]
P = torch.randperm(9)
difference = (attend(X64[P], *W64)[0] - attend(X64, *W64)[0][P]).abs().max().item()
print(
    f"largest difference between f(PX) and P f(X): below {max(1e-15, 10 ** math.ceil(math.log10(difference + 1e-30))):.0e}"
)
claim("f(PX) = P f(X) to 1e-12", difference < 1e-12)

# %% [markdown]
# Move three words yourself: drag them, or use Alt and the arrow keys. Below them stand both sides of the equation and their largest difference; word vectors and matrices are random. The switch “Positions” adds a vector to each word that depends on its *place*; section 4 is about such vectors.

# %%
seed_everything(0)
vectors = torch.randn(3, 4)
matrices = [torch.randn(4, 3) for _ in range(3)]
shuffle = widgets.Permutation(
    words,
    vectors,
    *matrices,
    predict=(
        "Once each place adds a vector of its own, does f(PX) = P f(X) still hold?",
        ["yes, for any weights", "no, the outputs depend on the order of the words", "no output changes at all"],
    ),
)
shuffle

# %%
place = torch.randn(3, 4)  # one vector for each of three places
order = [2, 1, 0]  # man bites dog
swapped, kept = attend(vectors[order] + place, *matrices)[0], attend(vectors + place, *matrices)[0][order]
display(
    shuffle.compare(
        "b",
        f"With other random vectors for the places the two sides differ by up to {(swapped - kept).abs().max():.2f}.",
    )
)
plain = (attend(vectors[order], *matrices)[0] - attend(vectors, *matrices)[0][order]).abs().max()
claim("without places both sides are equal (1e-6)", plain < 1e-6)
claim("with places they are not", (swapped - kept).abs().max() > 0.01)

# %% [markdown]
# So "dog bites man" and "man bites dog" are, to self-attention, the same set of three words. Does that matter? Take sentences such as "the old dog bites the small cat" and
# ask: **who bites?** Every noun can be the biter or the bitten; only the order says which. In the test, nouns meet that never met in training.

# %% [markdown] question="03.3"
# **Predict.** One layer of self-attention without any information about positions is trained to name the biter, reading the whole sentence. Its accuracy on new pairs of nouns is about ...
#
# - a) 1.00
# - b) 0.50
# - c) 0.03: one of 40 nouns by chance
#
# ### BEGIN ANSWER
# right: b
# a: From which information? Swap biter and bitten: the model sees the very same set of words.
# b: Yes: it finds the two nouns and tosses a coin between them.
# c: It learns more than nothing: *which* two nouns are in the sentence is visible without positions.
# ### END ANSWER

# %%
train_set, test_set = roles.role_data(seed=0)
print("for example:", " ".join(roles.decode(test_set.tokens[0])[1:]), "| biter:", roles.NOUNS[test_set.roles[0, 0]])
accuracy = {}
blind, accuracy["none"] = experiments.train_role_reader(
    lambda: SingleHeadReader(positions="none", attend=attend), label="no positions"
)
claim("without positions the biter is a coin toss: at most 0.55", accuracy["none"] <= 0.55)
with torch.no_grad():
    said = blind(test_set.tokens).argmax(dim=-1, keepdim=True)
claim("but what it names is one of the two nouns (99 %)", (said == test_set.roles).any(dim=1).double().mean() >= 0.99)

# %% [markdown]
# ## 4 Three ways to say where
#
# The remedy: give each word vector something that depends on its position. The original Transformer used waves of falling frequency:
#
# $$
# \begin{aligned}
# p_{t, 2i} &= \sin\!\left(t / 10000^{2i/d}\right), \quad p_{t, 2i+1} = \cos\!\left(t / 10000^{2i/d}\right)
# && p \in \mathbb{R}^{T \times d},\; t = 0, \dots, T-1
# \end{aligned}
# $$
#
# Columns $2i$ and $2i+1$ are the two coordinates of the tip of one clock hand: the first hand turns by one radian a word, the last hardly moves.


# %% exercise="sinusoidal_positions" minutes=15 difficulty=2
def sinusoidal_positions(T, d):
    """The table of sinusoidal positions, (T, d), for any d ≥ 1.

    Even columns hold sines, odd columns cosines; columns 2i and 2i+1 share the angle t / 10000^(2i/d).
    """
    ### BEGIN SOLUTION
    t = torch.arange(T, dtype=torch.float64).unsqueeze(1)
    angles = t / 10000 ** (torch.arange(0, d, 2, dtype=torch.float64) / d)
    table = torch.zeros(T, d)
    table[:, 0::2] = angles.sin().float()
    table[:, 1::2] = angles.cos()[:, : d // 2].float()
    return table
    ### END SOLUTION


# %% [markdown] hints="sinusoidal_positions"
# 1. How many different frequencies are there for d columns? And for an odd d, is there one more sine, or one more cosine?
# 2. `torch.arange(0, d, 2)` already counts 0, 2, 4, …: it *is* the 2i of the formula. Fill even and odd columns separately.
# 3. `angles = t / 10000 ** (torch.arange(0, d, 2) / d)`; `table[:, 0::2] = angles.sin()`; `table[:, 1::2] = angles.cos()[:, : d // 2]`.

# %%
waves = use(sinusoidal_positions)
table = waves(64, 32)
display(
    plots.heatmap(
        table,
        queries=[str(t) if t % 8 == 0 else "" for t in range(64)],
        keys=[str(c) if c % 4 == 0 else "" for c in range(32)],
        title="Sinusoidal positions: fast waves left, slow ones right",
        query_label="position",
        key_label="column",
        value_label="value",
        description="Heatmap of the table of 64 positions by 32 columns. Left columns alternate quickly from row to row, right columns hardly change.",
    )
)
similarity = table @ table.T
claim(
    "every position vector has the same length",
    torch.allclose(similarity.diagonal(), torch.full((64,), 16.0), atol=1e-4),
)
claim(
    "the product of two positions depends on their distance only",
    torch.allclose(similarity[:-1, :-1], similarity[1:, 1:], atol=1e-4),
)

# %% [markdown]
# ### Added or appended?
#
# One can *add* the position to the word vector, or *append* it (some texts say "concatenated"). Does it make a difference? What follows is always a linear map, and
#
# $$
# \begin{aligned}
# [x; p] \begin{bmatrix} W_1 \\ W_2 \end{bmatrix} &= x W_1 + p W_2
# && \text{a map of the two appended is a sum of two maps.}
# \end{aligned}
# $$
#
# Adding is the special case in which both share one map, $x W + p W$. It keeps the vector at size $d$, and a model can learn to keep word and place in different directions.

# %%
seed_everything(0)
word, place, W_1, W_2 = torch.randn(5, 8), torch.randn(5, 8), torch.randn(8, 8), torch.randn(8, 8)
claim(
    "a linear map of the appended vector is the sum of two maps",
    torch.allclose(torch.cat([word, place], dim=-1) @ torch.cat([W_1, W_2]), word @ W_1 + place @ W_2, atol=1e-5),
)

# %% [markdown]
# **Learned positions** are simpler still: a table with one trained vector for each position (*positional embedding*). It ends at its last row.
#
# Now the whole input layer of a Transformer: look the word up, multiply by $\sqrt{d_{\text{model}}}$, add the position. The factor belongs to an embedding that starts at size $1/\sqrt{d_{\text{model}}}$, as in the original paper, so that words and waves are equally loud. (torch's own `nn.Embedding` starts
# at size 1: times $\sqrt{d}$ it would drown the waves. The reader below therefore starts it smaller.) The table of waves is a
# **buffer**: it belongs to the module, moves with it to a GPU, and is not trained.


# %% exercise="TokenEmbedding" minutes=15 difficulty=2
class TokenEmbedding(nn.Module):
    """Word vectors times √d_model, plus sinusoidal positions.

    TokenEmbedding(vocab, d_model, max_len=64); self.emb is an nn.Embedding; forward(idx (B, T)) -> (B, T, d_model).
    """

    def __init__(self, vocab, d_model, max_len=64):
        super().__init__()
        ### BEGIN SOLUTION
        self.emb = nn.Embedding(vocab, d_model)
        self.register_buffer("positions", waves(max_len, d_model))
        ### END SOLUTION

    def forward(self, idx):
        ### BEGIN SOLUTION
        return self.emb(idx) * math.sqrt(self.emb.embedding_dim) + self.positions[: idx.shape[1]]
        ### END SOLUTION


# %% [markdown] hints="TokenEmbedding"
# 1. What is multiplied by the square root: the embedding, or the sum? How many rows of the table does a sequence of T words need?
# 2. `self.emb = nn.Embedding(vocab, d_model)`; the table (`waves(max_len, d_model)` from the cell above) goes into `self.register_buffer("positions", table)`, then it is an attribute of that name.
# 3. `self.emb(idx) * math.sqrt(self.emb.embedding_dim) + self.positions[: idx.shape[1]]`.

# %% [markdown] question="03.4"
# **Predict.** The same layer as above, now with positions. How well does it name the biter?
#
# - a) learned positions near 1.00; sinusoids near 1.00
# - b) learned positions near 1.00; sinusoids near 0.50, because they are not trained
# - c) both near 0.75
#
# ### BEGIN ANSWER
# right: a
# a: Yes. What matters is that positions differ; whether they were learned or computed is secondary here.
# b: The waves are fixed, but the matrices that read them are trained.
# c: With positions "the first noun" is a clear question with a clear answer.
# ### END ANSWER

# %%
token_embedding = use(TokenEmbedding)
for kind in ("learned", "sinusoidal"):
    reader, accuracy[kind] = experiments.train_role_reader(
        lambda: SingleHeadReader(positions=kind, attend=attend, token_embedding=token_embedding),
        label=f"{kind} positions",
    )
    if kind == "learned":
        learned_reader = reader
full = measured.load("roles")
display(
    plots.table(
        [(kind, accuracy[kind], measured.spread(full["biter"][kind])) for kind in ("none", "learned", "sinusoidal")],
        header=("positions", "biter right, this run", "authors, three seeds"),
        caption="One head, one layer, 600 steps: who bites? (new pairs of nouns)",
        digits=2,
    )
)
claim("with learned positions at least 0.95 are right", accuracy["learned"] >= 0.95)
claim("with sinusoids at least 0.9 are right", accuracy["sinusoidal"] >= 0.9)

# %%
sentence = "the old dog bites the small cat"
with torch.no_grad():
    said, looked = learned_reader.read(roles.encode(sentence).unsqueeze(0))
print(f"{sentence!r}: the biter is the {roles.NOUNS[said.argmax()]}")
_, all_looked = learned_reader.read(test_set.tokens)
on_biter = (test_set.tokens - roles.WORDS.index(roles.NOUNS[0]) == test_set.roles[:, :1]).to(all_looked)
share = (all_looked[:, 0].detach() * on_biter).sum(dim=1)
moved = test_set.tokens[:, 2] >= roles.WORDS.index(roles.ADJECTIVES[0])  # an adjective stands before the first noun
claim(
    "the biter gets at least 0.9 of the weight, with an adjective before it and without",
    min(share[moved].mean(), share[~moved].mean()) >= 0.9,
)
plots.heatmap(
    looked[0, :1],
    queries=["<cls>"],
    keys=["<cls>", *sentence.split()],
    title="Where the reading position looks",
    query_label="query",
    key_label="key",
)

# %% [markdown]
# **What you see.** A mark `<cls>` stands in front of each sentence; the answer is read from its output. It looks at the first noun, with an adjective before it or without. Position *and* content decide together: keys carry both.
#
# ## 5 Rotary positions
#
# Adding a position mixes *where* with *what*. RoPE (rotary position embedding) leaves the word vectors alone and **turns** queries and keys instead: the pair of features $(2i, 2i+1)$ at position $t$ is rotated by the angle $t\,\theta_i$.
#
# $$
# \begin{aligned}
# \begin{bmatrix} x'_{2i} & x'_{2i+1} \end{bmatrix} &=
# \begin{bmatrix} x_{2i} & x_{2i+1} \end{bmatrix}
# \begin{bmatrix} \cos t\theta_i & \sin t\theta_i \\ -\sin t\theta_i & \cos t\theta_i \end{bmatrix}
# && \theta_i = 10000^{-2i/d},\; i = 0, \dots, d/2 - 1
# \end{aligned}
# $$
#
# Position enters the dot product of two turned vectors only through the *difference* of their angles: for given words the score depends on the distance $m - n$, not on where they stand. (Two layouts exist: neighbours as pairs, as
# here, and first half with second half. Both are consistent; they must not be mixed.)


# %% exercise="apply_rope" minutes=20 difficulty=3
def apply_rope(x):
    """Turn the pairs (0, 1), (2, 3), … of the vector at position t by t / 10000^(2i/d); positions start at 0.

    x (..., T, d), d even. Returns the same shape.
    """
    ### BEGIN SOLUTION
    T, d = x.shape[-2:]
    theta = 10000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    angles = torch.arange(T, dtype=torch.float64).unsqueeze(1) * theta  # (T, d/2)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)
    ### END SOLUTION


# %% [markdown] hints="apply_rope"
# 1. Positions belong to the second-last axis, pairs to the last. Which shape must the angles have, so that they fit x with any number of axes in front?
# 2. Take `x[..., 0::2]` and `x[..., 1::2]`, make the two rotated halves, and put them back *interleaved*. One of the two formulas has a minus sign, the other has none.
# 3. `torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)`.

# %%
rope = use(apply_rope)
seed_everything(0)
q, k = torch.randn(32), torch.randn(32)
turned_q, turned_k = rope(q.expand(40, 32)), rope(k.expand(40, 32))  # the same vector at 40 positions
by_position = turned_q @ turned_k.T  # score of a query at m with a key at n
display(
    plots.table(
        [
            (f"query at {m}, key at {n}", m - n, by_position[m, n].item())
            for m, n in ((5, 2), (15, 12), (35, 32), (5, 0), (39, 34))
        ],
        header=("pair", "signed distance", "score"),
        caption="The same query and key at different places: equal distance, equal score",
    )
)
shift = (by_position[5:35, 5:35] - by_position[:30, :30]).abs().max().item()
claim("score(m, n) = score(m + 5, n + 5) to 1e-4", shift < 1e-4)
claim("turning keeps the length of a vector", torch.allclose(turned_q.norm(dim=-1), q.norm().expand(40), atol=1e-4))

# %% [markdown]
# Try every pair. The matrix holds the scores of one query and one key at all positions: with rotations, each diagonal has one colour. Then choose the sinusoids, which are added, or the positions that the reader of section 4 has learned.

# %%
learned_places = learned_reader.embed.positions.table.detach()  # (8 positions, features), trained to find the biter
some_q, some_k = torch.randn(2, learned_places.shape[1])
distance = widgets.Positions(
    some_q,
    some_k,
    learned=learned_places,
    predict=(
        "Turned by RoPE, query and key may move together, and their score stays. What if sinusoids are *added* to both?",
        ["it stays, too: waves only know distances", "it changes", "it stays if query and key are the same word"],
    ),
)
distance

# %%
T = len(learned_places)
turned = rope(some_q.expand(T, -1)) @ rope(some_k.expand(T, -1)).T
summed = (some_q + waves(T, len(some_q))) @ (some_k + waves(T, len(some_k))).T  # the waves are added instead
uneven = {
    name: (scores[1:, 1:] - scores[:-1, :-1]).abs().max().item()
    for name, scores in (("turned", turned), ("added", summed))
}
display(
    distance.compare(
        "b",
        f"One place further, scores of added waves change by up to {uneven['added']:.1f}. The product of two waves knows the "
        "distance only; the products of a word with a wave know the place.",
    )
)
claim("turned: both one place further, the same score (1e-4)", uneven["turned"] < 1e-4)
claim("added: another score", uneven["added"] > 0.1)

# %% [markdown]
# ## 6 Longer than anything in training
#
# The translators of notebooks 01 and 02 failed beyond their training lengths, without any position vectors. Position vectors add a reason of their own: what does a model know about position 100, if it has never seen more than 32? We train a small language model (notebook 04 trains it, notebook 06 takes it apart)
# on windows of 32 characters of Python's own manual, and let it read windows of 128.

# %% [markdown] question="03.5"
# **Predict.** With sinusoids there *is* a vector for position 100. What happens to the loss beyond position 32, the training length?
#
# - a) nothing: sinusoids are defined everywhere
# - b) it rises sharply as soon as the training length is passed
# - c) it falls further, because there is more context
#
# ### BEGIN ANSWER
# right: b
# a: They are defined; but the model has never learned what these combinations of waves *mean*.
# b: Yes. "Works for any length" and "has learned to work at any length" are different things.
# c: More context would help if the model could use it.
# ### END ANSWER

# %%
manual = python_manual()
spans = ((16, 32), (32, 48), (48, 64), (64, 96), (96, 128))
losses = {
    kind: experiments.loss_by_position(kind, manual, spans=spans, label=f"positions: {kind}")
    for kind in ("sinusoidal", "rope")
}
table = measured.load("positions")
display(
    plots.table(
        [(f"{kind}, this run", *values) for kind, values in losses.items()]
        + [("3-gram: how hard the text is there", *table["trigram"])]
        + [
            (f"{kind}, authors", *(measured.spread([run[i] for run in runs]) for i in range(len(spans))))
            for kind, runs in table["nats"].items()
        ],
        header=("positions", *(f"{a} to {b}" for a, b in spans)),
        caption="Nats a character by position in the window; training ended at position 32 (authors: three seeds)",
        digits=3,
    )
)
claim(
    "sinusoids: beyond twice the training length the loss is at least 0.5 nats higher than inside",
    losses["sinusoidal"][3] - losses["sinusoidal"][0] >= 0.5,
)
claim(
    "just beyond the training length rotary positions lose less than sinusoids",
    losses["rope"][1] - losses["rope"][0] < losses["sinusoidal"][1] - losses["sinusoidal"][0],
)

# %% [markdown]
# **What you see.** Inside the trained length rotations are best. Beyond it sinusoids break at once, and so do learned vectors (rows that training never touched; a table of 32 rows would simply end). Rotary positions hold a little longer, since a
# distance of 20 is familiar even at position 45, and then break, too. In the authors' table one row stays flat: **ALiBi**, which has no position vectors at all and lowers each score in proportion to the distance. What it rises by, the 3-gram
# rises by as well: there the text itself is harder. The lecture's "naturally generalises to long sequences" is true of the operator; a model has to earn it by its positions.
#
# The row "none" is no coin toss: language models carry a *causal mask* (notebook 04), and how much of the text a word can see tells the order from the second layer on. Equivariance is a property of attention **without** a mask.

# %% [markdown]
# ### Optional: ALiBi in one picture
#
# Each head has a slope $m$ and adds $-m\,|i - j|$ to its scores: a soft window, wide in one head and narrow in another. Nothing about it ends at the training length.

# %%
bias = alibi_bias(4, 24)
plots.lines(
    list(range(24)),
    {f"head {h + 1}": bias[h, 0].exp().tolist() for h in range(4)},
    xlabel="distance",
    ylabel="factor before normalisation",
    title="ALiBi: every head forgets at its own rate",
    ylim=(0, 1.05),
)

# %% [markdown]
# ## 7 What is still missing
#
# Self-attention has replaced the recurrence: any two words in one step, nothing waits. Three things are open. It mixes values *linearly* for given weights (notebook 06 adds a network behind it). It sees the future, which
# is cheating when the task is to predict the next word (notebook 04). And one softmax gives one weighted mean, however many places it looks at (notebook 05).

# %% [markdown] question="03.6"
# **Decide.** Which of these changes makes self-attention (without mask, without positions) able to tell "dog bites man" from "man bites dog"?
#
# - a) larger matrices $W_Q$, $W_K$, $W_V$
# - b) a second layer of self-attention
# - c) adding a vector to each word that depends on its position
#
# ### BEGIN ANSWER
# right: c
# a: Equivariance holds for *any* weights, whatever their size: you have measured it.
# b: Two equivariant layers are equivariant: $g(f(PX)) = g(P f(X)) = P g(f(X))$.
# c: Yes. Now $X$ itself changes when words change places.
# ### END ANSWER

# %% [markdown] written="03.W"
# **Explain in your own words** (about five sentences): why can self-attention not know the order of words, why is that good in one respect and bad in another, and what do added and rotary
# positions do differently?
#
# ### BEGIN GUIDE
# Full marks for these four points:
# 1. Each output is a weighted sum over a *set* of keys and values; shuffling the input shuffles the output in the same way, for any weights (1 point).
# 2. Good: every pair interacts in one step and nothing waits. Bad: meaning that lies in the order is lost, as the coin toss for the biter shows (2 points).
# 3. Added positions change the word vectors, so queries, keys and values carry them; rotations act on queries and keys only, and scores depend on the distance alone (1 point).
# 4. Neither is guaranteed to work beyond the trained length; measured in section 6 (1 point).
# ### END GUIDE

# %% [markdown]
# ## Recap
#
# - **Self-attention**: queries, keys and values are three linear maps of the same sequence; every word attends to every word.
# - Any two positions interact in **one step**; the whole sequence is computed in parallel.
# - It is **permutation equivariant**, $f(PX) = P f(X)$: a set, not a sequence. Without positions the biter is a coin toss.
# - **Positional encodings**: **sinusoids** (fixed, added), **learned** (a table, added), **RoPE** (turns queries and keys, relative), **ALiBi** (a penalty on distance).
# - Beyond the training length a position has to be *meaningful*, not only defined.
#
# **Sources.** Vaswani et al. 2017, *Attention is all you need*, sections 3.2.3, 3.4 and 3.5 · Su et al. 2021, *RoFormer: enhanced transformer with rotary position embedding* · Haviv et al. 2022, *Transformer language models without positional encodings still learn positional information* · Press, Smith and Lewis 2022, *Train short, test long* (ALiBi) ·
# Gehring et al. 2017, *Convolutional sequence to sequence learning* (learned positions). Text: the manual that ships with Python (PSF licence).

# %% [markdown]
# ### Your questions so far

# %% questions="03"
