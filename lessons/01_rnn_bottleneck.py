# Lesson 01. Maintainers: this text is the only hand-written form of the notebook; `course build` makes the rest.

# %% [markdown]
# # 01 The RNN bottleneck: why one vector is not enough
#
# **The question.** *How much of a sentence fits into one vector?*
#
# Before attention, a translation model read a whole sentence, squeezed it into one vector of fixed size, and wrote
# the translation from that vector alone. You will build such a model, train it on real language, and watch where it
# breaks. Everything later in the course is an answer to what you see here.
#
# **You will be able to**
# - write one step of an RNN and of a GRU, and an encoder that copes with sentences of different length;
# - explain teacher forcing, and train and decode a translation model;
# - measure three limits of recurrence: influence that dies with distance, one vector for a whole sentence, and steps
#   that must wait for each other.
#
# **You should know** matrix products, the softmax, and how to train a small PyTorch model.
# **Time** about two hours; running every cell takes about a minute.
#
# **How it works.** You *predict*, *run*, and read the explanation. Exercises come with a check that tells you what
# your code does, not only that it is wrong. An unsolved exercise never stops you: the course's own version stands
# in. Once your version passes, the models below are built from it.

# %%
try:
    from course_utils import answer, check, claim, question_points, setup, use
except ModuleNotFoundError as missing:
    raise ImportError(
        f"This kernel lacks {missing.name}. Start JupyterLab with `python3 course.py lab` (Windows: `py -3 course.py lab`) "
        "from the course folder, or in an editor, choose the Python in the course's .venv as the kernel."
    ) from None

setup("01")

import math

import torch
import torch.nn.functional as F
from IPython.display import display
from torch import nn

from course_utils import experiments, measured, plots, scoreboard, widgets
from course_utils.data.dates import date_corpus
from course_utils.evaluation import translation_scores
from course_utils.seq2seq import FixedContextTranslator, translate
from course_utils.training import n_parameters, seed_everything

# %% [markdown]
# ## 1 Sequences in, sequences out
#
# A network for pictures has a fixed input and a fixed output. Language has neither. A **recurrent neural network**
# (RNN) reads one item at a time and keeps a **state**, a vector that summarises what it has read so far. The same few
# weights serve for any length, and that covers three families of problems:
#
# | family | example | in | out |
# |---|---|---|---|
# | one to many | captioning a picture | one vector | a sentence |
# | many to one | classifying a video | frames | one label |
# | many to many | translation | a sentence | a sentence, often of another length |
#
# Each takes two lines. Look at the shapes; nothing is trained yet.

# %%
seed_everything(0)
gru = nn.GRU(input_size=8, hidden_size=16, batch_first=True)

picture, caption = torch.randn(1, 1, 16), torch.randn(1, 5, 8)  # one picture; the five words said so far
states, _ = gru(caption, picture)  # one to many: the picture is where the state begins
captioning = nn.Linear(16, 100)(states)

video = torch.randn(1, 30, 8)  # thirty frames
_, last = gru(video)  # many to one: only the last state is used
classifying = nn.Linear(16, 4)(last[0])

english, italian = torch.randn(1, 7, 8), torch.randn(1, 9, 8)  # seven words in, nine words out
_, context = gru(english)  # many to many: the last state of the reader ...
states, _ = nn.GRU(8, 16, batch_first=True)(italian, context)  # ... is the first state of the writer
translating = nn.Linear(16, 100)(states)

plots.table(
    [
        ("captioning", "1 picture of 16 numbers", tuple(captioning.shape), "100 word scores after each of 5 words"),
        ("video", "30 frames of 8 numbers", tuple(classifying.shape), "4 class scores"),
        ("translation", "7 words of 8 numbers", tuple(translating.shape), "100 word scores after each of 9 words"),
    ],
    header=("task", "in", "shape of the output", "meaning"),
    caption="Three families, one recurrent layer (batch of one)",
)

# %% [markdown]
# ## 2 One step at a time
#
# At step $t$ the network reads the word vector $x_t$, looks at its own state $h_{t-1}$, and makes the next state:
#
# $$
# \begin{aligned}
# h_t &= \tanh(x_t W_{xh} + h_{t-1} W_{hh} + b)
# && x_t \in \mathbb{R}^{D},\; h_t, b \in \mathbb{R}^{H},\; W_{xh} \in \mathbb{R}^{D \times H},\;
# W_{hh} \in \mathbb{R}^{H \times H}
# \end{aligned}
# $$
#
# Convention for the whole course: vectors are rows, so a weight has the shape (in, out) and is used as `x @ W`.
# (Written for columns, the same map is $W x$ with the matrix transposed; you will meet both in papers.)
#
# First with numbers small enough to follow, the word beside each row:

# %%
words = ["the", "dog", "bites"]
x = torch.tensor([[0.1, 0.0], [0.9, 0.2], [-0.3, 0.8]])  # (T, D): three words, two numbers each
W_xh = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
W_hh = torch.tensor([[0.5, 0.0], [0.5, 0.5]])
b = torch.tensor([0.0, 0.1])

h = [0.0, 0.0]
rows, by_hand = [], []
for word, x_t in zip(words, x.tolist(), strict=True):
    before = h
    h = [
        math.tanh(sum(x_t[i] * W_xh[i, j].item() + before[i] * W_hh[i, j].item() for i in range(2)) + b[j].item())
        for j in range(2)
    ]
    by_hand.append(h)
    rows.append((word, *x_t, *before, *h))
by_hand = torch.tensor(by_hand)
plots.table(
    rows,
    header=("word", "x[0]", "x[1]", "h before [0]", "h before [1]", "h after [0]", "h after [1]"),
    caption="A state travels through a sentence: `h after` of one row is `h before` of the next",
    digits=2,
)

# %% [markdown]
# The last state has seen all three words. Now write the step yourself, for a whole batch of `B` sentences at once.


# %% exercise="rnn_step" minutes=5 difficulty=1
def rnn_step(x, h, W_xh, W_hh, b):
    """The next state of an RNN.

    x (B, D), h (B, H), W_xh (D, H), W_hh (H, H), b (H). Returns the next state (B, H).
    """
    ### BEGIN SOLUTION
    return torch.tanh(x @ W_xh + h @ W_hh + b)
    ### END SOLUTION


# %% [markdown] hints="rnn_step"
# 1. Three things are added up: what the input says, what the old state says, and a constant.
# 2. The squashing wraps the whole sum. It keeps every number of the state between -1 and 1, however long you go on.
# 3. `torch.tanh(...)` around `x @ W_xh`, `h @ W_hh` and `b`.

# %% [markdown]
# From here on `step` is your function if it passes, and the course's otherwise. The loop with `step`, and torch's own
# `nn.RNN` with the same weights copied in, must give the states computed by hand above.

# %%
step = use(rnn_step)

h = torch.zeros(1, 2)
looped = []
for t in range(3):
    h = step(x[t : t + 1], h, W_xh, W_hh, b)
    looped.append(h[0])

rnn = nn.RNN(2, 2, batch_first=True)
with torch.no_grad():  # torch keeps weights as (out, in), and two biases of which one is enough
    rnn.weight_ih_l0.copy_(W_xh.T), rnn.weight_hh_l0.copy_(W_hh.T)
    rnn.bias_ih_l0.copy_(b), rnn.bias_hh_l0.zero_()
    batched, _ = rnn(x.unsqueeze(0))

claim(
    "a loop over your step gives the states computed by hand", torch.allclose(torch.stack(looped), by_hand, atol=1e-6)
)
claim("nn.RNN with the same weights gives them, too", torch.allclose(batched[0], by_hand, atol=1e-6))

# %% [markdown] question="01.1"
# **Predict.** You feed the RNN a sentence of 3 words, then a book of 100,000 words. How many numbers does its final
# state hold?
#
# - a) more for the book: the state grows with what has been read
# - b) the same: `H` numbers, whatever was read
# - c) fewer for the book, because old words are erased
#
# ### BEGIN ANSWER
# right: b
# a: Look at the shapes of the step: it takes (B, H) and returns (B, H). Nothing in it can grow.
# b: Yes. That is what makes an RNN cheap, and it is the bottleneck of this lesson: a book gets no more room than a word.
# c: Old words may well be overwritten, but the size of the vector does not change: the step takes (B, H) and returns
#   (B, H).
# ### END ANSWER

# %% [markdown]
# ## 3 How far does influence reach?
#
# A word at the start of a paragraph can decide a word at its end. In an RNN the news has to pass through every state
# in between: the **interaction distance** of two words that stand $k$ words apart is $k$ steps.
#
# Each step multiplies by $W_{hh}$ and squashes with $\tanh$. By the chain rule the influence of the input $k$ steps
# back on the last state is a product of $k$ matrices:
#
# $$
# \begin{aligned}
# \frac{\partial h_T}{\partial x_{T-k}} &= \frac{\partial h_{T-k}}{\partial x_{T-k}}
# \prod_{t=T-k+1}^{T} \frac{\partial h_t}{\partial h_{t-1}}
# && \frac{\partial h_t}{\partial h_{t-1}} \in \mathbb{R}^{H \times H}
# \end{aligned}
# $$
#
# What do fifty factors do to a number?

# %% [markdown] question="01.2"
# **Predict.** A freshly initialised RNN with 32 features reads 101 random vectors. How much weaker is the influence
# (the norm of the gradient) of the input 50 steps back, compared with the input 1 step back?
#
# - a) about 50 times weaker: it falls in proportion to the distance
# - b) not weaker: the same weights are used at each step
# - c) more than a billion times weaker: it falls exponentially
#
# ### BEGIN ANSWER
# right: c
# a: That would be 1/k. Here 50 factors are *multiplied*, not divided by 50.
# b: The weights are the same, but they are applied 50 times over, and each time the influence shrinks by a factor.
# c: Yes: a factor for each step, multiplied. The next cell measures it.
# ### END ANSWER

# %%
distances = (1, 10, 50, 100)
influence = {name: experiments.influence(layer, distances) for name, layer in experiments.LAYERS.items()}
display(
    plots.table(
        [(name, *values) for name, values in influence.items()],
        header=("layer at initialisation", *(f"{k} back" for k in distances)),
        caption="Influence of an input on the last output: norm of the gradient, by distance",
        digits=2,
    )
)
curve = [1, 2, 3, 5, 8, 12, 20, 30, 40, 60, 80, 100]
display(
    plots.lines(
        curve,
        {
            name: [max(v, 1e-12) for v in experiments.influence(layer, curve)]
            for name, layer in experiments.LAYERS.items()
        },
        xlabel="distance k (steps back)",
        ylabel="influence (norm of gradient)",
        title="Recurrent layers forget exponentially; paths that skip do not",
        caption="Cut off at 1e-12: below that, influence is nothing for every practical purpose",
        logy=True,
    )
)
claim(
    "RNN: 50 steps back counts less than a billionth of 1 step back", influence["RNN"][2] < 1e-9 * influence["RNN"][0]
)
claim(
    "a forget gate that starts open carries influence further than any other recurrent layer here",
    influence["LSTM, forget bias 1"][2] > 100 * max(influence[n][2] for n in ("RNN", "GRU", "LSTM")),
)
claim(
    "attention: 100 steps back counts at least half as much as 1 step back",
    influence["attention"][3] > 0.5 * influence["attention"][0],
)

# %% [markdown]
# **What you see.** Above the cut the recurrent layers are straight lines downwards: a factor per step. For the RNN it is about 0.43 (torch starts $W_{hh}$ so that it shrinks a vector to about 0.58, the $\tanh$ does the
# rest), and $0.43^{50}$ is about $10^{-18}$. Another initialisation, an orthogonal $W_{hh}$ for instance, dies far more slowly: the *form* of the curve is the law, the factor is a choice. The **gated** layers fall more
# slowly, above all an LSTM whose forget gate starts open (bias 1): its cell is a *highway* on which the old content is multiplied by about 0.73 at first (0.5 without the bias) and added to, not pushed through a matrix.
#
# The two lines that stay up do not walk step by step. The dilated convolution reaches 255 positions back with 8 layers: each doubles the reach, so the path grows like $\log_2 k$. (That its line is *high* is the merit of the residual connection
# around each layer; that it is *flat* comes from the short path.) Attention, the subject of the next notebooks, reaches every position in **one** step.
#
# **What you might wrongly conclude.** "Attention has the strongest gradients." No: at distance 1 its influence is the *smallest* of
# all, because one head spreads its attention over 100 positions. What matters is that the line is flat. And these are numbers at initialisation:
# training can push an RNN's factor towards one.
#
# Touch it once before we train. Below, an RNN of 12 features reads a sentence of ten words. Mark a prediction; then change how many words are read, and walk from word to word. The chain shows the path from a word to the last state, and how much of the word is left at its end.

# %%
seed_everything(0)
sentence = "the dog that chased the cat over the wall sleeps".split()
tiny = nn.RNN(6, 12)
vectors = torch.randn(len(sentence), 6)
weights = tiny.weight_ih_l0.T, tiny.weight_hh_l0.T, tiny.bias_ih_l0 + tiny.bias_hh_l0  # (in, out), as `x @ W`
bottleneck = widgets.RNNBottleneck(
    sentence,
    vectors,
    *weights,
    predict=(
        "Ten words are read, then only the first five. How much of “the”, the first word, is left in the last state, "
        "compared with the last word read?",
        ["as much both times", "about twice as much after five words", "more than ten times as much after five words"],
    ),
)
bottleneck

# %%
left = {}
for n in (5, 10):
    slopes = torch.autograd.functional.jacobian(lambda x: tiny(x)[1][0], vectors[:n])  # (12, n, 6): last state by input
    norms = slopes.norm(dim=(0, 2))
    left[n] = (norms[0] / norms[-1]).item()
display(
    bottleneck.compare(
        "c",
        f"Left of the first word: {left[5]:.2g} after five words, {left[10]:.2g} after ten. Each of the five words between "
        "multiplies what is left by a factor.",
    )
)
claim("after five words at least ten times as much of the first word is left as after ten", left[5] > 10 * left[10])
claim("the state holds 12 numbers after one word and after ten", tiny(vectors)[0].shape == (10, 12))

# %% [markdown]
# The state never grows, and every word between pushes the first one through the same matrix once more. Attention would connect both ends directly: a path of length 1. Now let us train.

# %% [markdown] question="01.3"
# **Predict.** Each layer is trained, for 300 steps, to name the *first* of `n + 1` random symbols (8 symbols, so
# guessing gives 0.125). Which layers still succeed at `n = 40`?
#
# - a) the RNN, the GRU and the LSTM
# - b) the GRU and the LSTM: gates solve the problem
# - c) the dilated CNN and attention only
#
# ### BEGIN ANSWER
# right: c
# a: Look at the table above: at 50 steps the RNN's influence is about 1e-18. There is nothing for training to hold on to.
# b: Gates help, from about 5 symbols to about 10 in this short training; 40 is still too far.
# c: Yes. The contrast is between paths whose length grows with the distance and paths that are short. Note that the
#   CNN is among the winners: short paths, not attention as such, make the difference here.
# ### END ANSWER

# %%
recall_at = (5, 10, 40)
recalled = {
    name: [experiments.recall_accuracy(experiments.LAYERS[name], n, label=name) for n in recall_at]
    for name in ("RNN", "LSTM, forget bias 1", "dilated CNN", "attention")
}
display(
    plots.table(
        [(name, *values) for name, values in recalled.items()],
        header=("layer", *(f"n = {n}" for n in recall_at)),
        caption="Accuracy of naming the first of n + 1 symbols after 300 steps (guessing: 0.125)",
        digits=2,
    )
)
claim("all four layers recall over 5 symbols", min(values[0] for values in recalled.values()) > 0.9)
claim(
    "at 10 symbols the gated layer succeeds where the plain RNN guesses",
    recalled["LSTM, forget bias 1"][1] > 0.9 and recalled["RNN"][1] < 0.3,
)
claim("at 40 symbols both recurrent layers guess", max(recalled["RNN"][2], recalled["LSTM, forget bias 1"][2]) < 0.3)
claim(
    "at 40 symbols the layers with short paths succeed", min(recalled["dilated CNN"][2], recalled["attention"][2]) > 0.9
)

# %% [markdown]
# **What you see.** What is learned fits what gradients could reach at the start: the RNN manages 5 symbols, the LSTM 10, and the layers with short paths do not notice the distance. The next table has more layers, more distances and
# three seeds; the split between long and short paths is the same in all of them.

# %%
full = measured.load("recall")
plots.table(
    [
        (name, *(measured.spread([run[i] for run in runs]) for i in range(len(full["distances"]))))
        for name, runs in full["accuracy"].items()
    ],
    header=("layer", *(f"n = {n}" for n in full["distances"])),
    caption="The same measurement by the authors: three seeds, lowest … highest",
)

# %% [markdown]
# ### Gates: a highway for the state
#
# A **GRU** decides, feature by feature, how much of its old state to keep. Two gates, each a number between 0 and 1:
#
# $$
# \begin{aligned}
# r &= \sigma(x W_0 + h U_0 + b_0) && \text{reset: how much of the past may the candidate see?} \\
# z &= \sigma(x W_1 + h U_1 + b_1) && \text{update: how much of the past stays?} \\
# n &= \tanh(x W_2 + (r \odot h) U_2 + b_2) && \text{candidate for the new state} \\
# h' &= (1 - z) \odot n + z \odot h && W \in \mathbb{R}^{3 \times D \times H},\;
# U \in \mathbb{R}^{3 \times H \times H},\; b \in \mathbb{R}^{3 \times H}
# \end{aligned}
# $$
#
# With $z = 1$ the state passes untouched, and so does its gradient: that is the highway. The LSTM has the same idea
# in its cell, $c' = f \odot c + i \odot g$. Both conventions for $z$ occur in the literature; ours is the one above:
# **z keeps**. (torch's `nn.GRU` applies $r$ after the product with $U_2$; ours, as in the original paper, before it.)


# %% exercise="gru_step" minutes=15 difficulty=2 optional=true
def gru_step(x, h, W, U, b):
    """The next state of a GRU.

    x (B, D), h (B, H), W (3, D, H), U (3, H, H), b (3, H), in the order reset, update, candidate.
    Returns the next state (B, H).
    """
    ### BEGIN SOLUTION
    r = torch.sigmoid(x @ W[0] + h @ U[0] + b[0])
    z = torch.sigmoid(x @ W[1] + h @ U[1] + b[1])
    n = torch.tanh(x @ W[2] + (r * h) @ U[2] + b[2])
    return (1 - z) * n + z * h
    ### END SOLUTION


# %% [markdown] hints="gru_step"
# 1. Four lines of mathematics, four lines of code. Which of them get a sigmoid, which one a tanh?
# 2. The reset gate acts on `h` *before* `h` is multiplied by `U[2]`, and it leaves the input alone.
# 3. `n = torch.tanh(x @ W[2] + (r * h) @ U[2] + b[2])`, and the result mixes `n` and `h` with weights `1 - z` and `z`.

# %%
gated = use(gru_step)
seed_everything(0)
D, H = 3, 4
x_t, h_0 = torch.randn(2, D), torch.randn(2, H)
W, U, b = torch.randn(3, D, H), torch.randn(3, H, H), torch.zeros(3, H)
keep = b.clone()
keep[1] = 100.0  # the update gate is pushed to 1
claim("with the update gate at 1 the state passes unchanged", torch.allclose(gated(x_t, h_0, W, U, keep), h_0))

# %% [markdown]
# ## 4 A translator out of two RNNs
#
# Our task for notebooks 01, 02 and 06: sentences that list long dates, from English to Hungarian. The words are real
# (they come from Unicode's language data), there are endlessly many sentences, and every translation has exactly one
# right form. Hungarian writes *year, month, day, weekday*, so the words
# change places. (Here only the order changes. In general the number of words does, too.)

# %%
corpus = date_corpus("hu", seed=0)  # 8,000 sentences with 1 to 6 dates to train on, 1 to 8 dates to test on
pair = corpus.test[2][0]
display(plots.sentence_pair(pair.source, pair.target, pair.alignment, title="A sentence and its translation"))
plots.table(
    [
        ("training sentences", len(corpus.train)),
        ("test sentences for each number of dates", len(corpus.test[1])),
        ("English words (with three markers: padding, begin, end)", len(corpus.source_vocab)),
        ("Hungarian words (the same)", len(corpus.target_vocab)),
        ("words in a sentence of 1 date", len(corpus.test[1][0].source)),
        ("words in a sentence of 8 dates", len(corpus.test[8][0].source)),
    ],
    header=("the corpus", "number"),
    caption="No day of the test occurs in training; sentences of 7 and 8 dates are longer than any in training",
)

# %% [markdown]
# ### The encoder
#
# The **encoder** reads the source sentence; its final state is the **context vector**. Sentences in a batch have
# different lengths, so short ones are filled up with padding. Padding is not a word: it must not move the state.


# %% exercise="seq2seq_encode" minutes=20 difficulty=2
def seq2seq_encode(emb, lengths, W_xh, W_hh, b):
    """Run an RNN over a padded batch, from a zero state.

    emb (B, T, D): embedded words; sentence i has lengths[i] real words, then padding.
    W_xh (D, H), W_hh (H, H), b (H).
    Returns outputs (B, T, H), zero on padding, and the state (B, H) after each sentence's last real word.
    """
    ### BEGIN SOLUTION
    h = emb.new_zeros(emb.shape[0], W_hh.shape[0])
    outputs = []
    for t in range(emb.shape[1]):
        real = (t < lengths).unsqueeze(-1)
        h = torch.where(real, torch.tanh(emb[:, t] @ W_xh + h @ W_hh + b), h)
        outputs.append(torch.where(real, h, torch.zeros_like(h)))
    return torch.stack(outputs, dim=1), h
    ### END SOLUTION


# %% [markdown] hints="seq2seq_encode"
# 1. Loop over time. Which sentences have a real word at position `t`? For the others, the state stays as it is.
# 2. `t < lengths` is a truth value for each sentence. `torch.where(condition, new, old)` picks row by row once the condition has
#    shape (B, 1).
# 3. Inside the loop: `real = (t < lengths).unsqueeze(-1)`, then `h = torch.where(real, step(...), h)` with the `step` from section 2, and the
#    output at `t` is `h` where real, zero elsewhere.

# %% [markdown]
# ### The decoder, and teacher forcing
#
# The **decoder** writes one word at a time, each from the context, its state and the word before. What is "the word
# before" in training? Its own guess is mostly nonsense at first, and one early mistake would spoil the rest of the sentence. So we feed
# the *right* word before, whatever the model said: **teacher forcing**.
#
# | position | 0 | 1 | 2 | 3 | 4 |
# |---|---|---|---|---|---|
# | must say (target) | 2026. | március | 5., | csütörtök | `<eos>` |
# | may read (input) | `<bos>` | 2026. | március | 5., | csütörtök |

# %% [markdown] question="01.4"
# **Predict.** Somebody forgets the shift and feeds the targets themselves as decoder input, at every position the
# word that is to be said there. What happens in training, and when translating?
#
# - a) the loss falls quickly to almost zero, and translations are useless
# - b) the loss stays high, because the task has become harder
# - c) nothing changes: the context vector carries the sentence anyway
#
# ### BEGIN ANSWER
# right: a
# a: Yes: the decoder learns to copy its input. When it translates, there is nothing to copy. A loss that is too good
#   is a symptom.
# b: It has become much easier: the answer stands in the input.
# c: The easiest way to lower the loss wins, and that is to copy the word from the input. The context is ignored.
# ### END ANSWER


# %% exercise="shift_right" minutes=5 difficulty=1
def shift_right(targets, bos_id):
    """The decoder's input for teacher forcing.

    targets (B, T): word ids. Returns (B, T): bos_id first, then the targets, each one place later.
    """
    ### BEGIN SOLUTION
    bos = torch.full_like(targets[:, :1], bos_id)
    return torch.cat([bos, targets[:, :-1]], dim=1)
    ### END SOLUTION


# %% [markdown] hints="shift_right"
# 1. Write the input under the target, as in the table. Who is one step behind?
# 2. The last target is never an input; the first input is the same for every sentence.
# 3. Make a column full of `bos_id` and put `targets[:, :-1]` behind it, along the time axis.

# %% [markdown]
# ### The loss
#
# At every position the model gives a score for each of the $V$ words (**logits**). Softmax makes probabilities of
# them, and the loss is the mean surprise at the right word, $-\ln p$, in **nats**. Toy numbers first: a vocabulary of
# three words, two positions.

# %%
toy_words = ["március", "5.,", "csütörtök"]
toy_logits = torch.tensor([[2.0, 0.0, 0.0], [0.0, 1.0, 0.0]])  # (T, V)
toy_targets = torch.tensor([0, 2])
probabilities = toy_logits.softmax(dim=-1)
surprise = [-math.log(probabilities[t, toy_targets[t]]) for t in range(2)]
display(
    plots.table(
        [
            (f"position {t}, must say {toy_words[toy_targets[t]]}", *(p.item() for p in probabilities[t]), surprise[t])
            for t in range(2)
        ],
        header=("", *(f"p({w})" for w in toy_words), "surprise -ln p"),
        caption="A likely right word surprises little, an unlikely one much",
        digits=2,
    )
)
by_hand = sum(surprise) / 2
claim(
    "the mean of the two is torch's cross_entropy",
    math.isclose(by_hand, F.cross_entropy(toy_logits, toy_targets).item(), rel_tol=1e-6),
)

# %% [markdown] question="01.5"
# **Compute.** A model that knows nothing gives every word of a vocabulary of 91 the same score. What is its loss, in
# nats per word? (Two decimals are enough.)
#
# ### BEGIN ANSWER
# right: 4.51
# tolerance: 0.01
# explain: Every word has probability 1/91, so the surprise is ln 91, about 4.51. A loss near ln V at the first step is a good
#   sign; a loss far above it points to a fault.
# ### END ANSWER


# %% exercise="lm_loss" minutes=15 difficulty=2
def lm_loss(logits, targets, pad_id):
    """Mean cross-entropy in nats over the real words of the batch.

    logits (B, T, V), targets (B, T); positions whose target is pad_id do not count. Returns a scalar tensor.
    """
    ### BEGIN SOLUTION
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=pad_id)
    ### END SOLUTION


# %% [markdown] hints="lm_loss"
# 1. One mean over all real words of the batch, not a mean of the sentences' means: a long sentence has more words to say.
# 2. `F.cross_entropy` wants raw scores with the classes on axis 1, (N, V) and (N): merge batch and time into N. It has an
#    argument for targets that are to be skipped.
# 3. `logits.flatten(0, 1)`, `targets.flatten()`, `ignore_index=pad_id`.

# %% [markdown]
# ### Writing a translation
#
# When translating there is no teacher: the model reads its own words. **Greedy decoding** always takes the likeliest one.
# A sentence is over when the model says `<eos>`; a batch is over when all its sentences are.


# %% exercise="greedy_decode" minutes=20 difficulty=2
def greedy_decode(model, idx, n, eos_id=None):
    """Append up to n words to each row of idx, always the likeliest one.

    idx (B, T0). model(idx) gives logits (B, T, V) and may be fed at most the last model.block_size words.
    A row that has said eos_id goes on saying it; decoding stops when all rows have. Returns (B, T0 + up to n).
    """
    ### BEGIN SOLUTION
    finished = torch.zeros(idx.shape[0], dtype=torch.bool)
    for _ in range(n):
        if bool(finished.all()):
            break
        word = model(idx[:, -model.block_size :])[:, -1].argmax(dim=-1)
        if eos_id is not None:
            word = torch.where(finished, eos_id, word)
            finished = finished | (word == eos_id)
        idx = torch.cat([idx, word.unsqueeze(1)], dim=1)
    return idx
    ### END SOLUTION


# %% [markdown] hints="greedy_decode"
# 1. One word a round: feed what there is, look at the *last* position, take the largest score over the vocabulary, append it.
# 2. Keep one truth value for each row, "finished". A finished row gets `eos_id` instead of what the model says. When
#    may you stop?
# 3. `word = model(idx[:, -model.block_size:])[:, -1].argmax(dim=-1)`, then `torch.where(finished, eos_id, word)`, then
#    `torch.cat([idx, word.unsqueeze(1)], dim=1)`.

# %% [markdown]
# ## 5 Everything through one vector
#
# Encoder and decoder are ready. Between them there is one vector of $d = 64$ numbers, whether the sentence holds one date or
# eight. (The layers are torch's LSTMs, the fastest recurrent layer on a CPU; `shift_right`, `lm_loss` and
# `greedy_decode` are yours where they pass.)

# %% [markdown] question="01.6"
# **Predict.** The model is trained for 1,000 steps on sentences of 1 to 6 dates. How does *exact match*, the share of
# sentences translated without a single mistake, depend on the number of dates?
#
# - a) it is about the same for 1 to 6 dates, since all of them occur in training
# - b) it falls: one date may work, long sentences do not
# - c) it rises: longer sentences give more context
#
# ### BEGIN ANSWER
# right: b
# a: All lengths are trained equally often, but each further date is more to get through the vector in the same number of steps.
# b: Yes. And it falls fast: see below.
# c: More context helps where it makes the next word more predictable. These dates are independent: each one is simply
#   more to remember.
# ### END ANSWER

# %%
seed_everything(0)
fixed = FixedContextTranslator(len(corpus.source_vocab), len(corpus.target_vocab), d=64, shift=use(shift_right))
history = experiments.train_translator(fixed, corpus, steps=1000, loss=use(lm_loss), label="fixed context vector")
scores = translation_scores(fixed, corpus)

# %%
board = scoreboard.load("01")
board.add(scoreboard.line("fixed context vector", scores, n_parameters(fixed), history))
display(board)
display(
    plots.lines(
        list(scores.exact_match),
        {
            "exact match (whole sentence right)": list(scores.exact_match.values()),
            "token accuracy (single words)": list(scores.token_accuracy.values()),
        },
        xlabel="dates in the sentence",
        ylabel="share right",
        title="One vector for a whole sentence",
        ylim=(0, 1.05),
    )
)
exact, token = scores.exact_match, scores.token_accuracy
claim("one date is translated without mistake in at least 90 % of the sentences", exact[1] >= 0.9)
claim("at three dates and more fewer than 10 % are", max(exact[n] for n in range(3, 9)) < 0.1)
claim("token accuracy falls with every further date", all(token[n] > token[n + 1] for n in range(1, 8)))

# %% [markdown]
# **What you see.** One date comes through almost always, two hardly ever, three never. Single words fall more gently, from
# nearly all right at one date to under a third at eight.

# %%
write = use(greedy_decode)
for n in (1, 2, 4):
    example = corpus.test[n][1]
    (said,) = translate(fixed, [example.source], corpus, decode=write)
    wrong = [
        f"[{word}]" if i >= len(example.target) or word != example.target[i] else word for i, word in enumerate(said)
    ]
    print(
        f"{n} date(s)\n  source  {' '.join(example.source)}\n  wanted  {' '.join(example.target)}\n  said    {' '.join(wrong)}\n"
    )

# %% [markdown]
# Words in brackets are wrong. Look at *how* it fails: in these sentences the form is right, year, month, day, weekday in their places. What
# is lost is *which* year and *which* day. The grammar sits in the decoder's weights; the facts have to pass through
# the vector.
#
# **What you might wrongly conclude.** "64 numbers cannot hold six dates." They can hold far more: 64 floating-point numbers are 2,048
# bits, a date needs about 14. What is limited is what gradient descent gets *into* the vector with this budget. A larger or
# longer-trained model moves the knee:

# %%
longer = measured.load("fixed_longer")["runs"]
plots.table(
    [(run["d"], run["steps"], run["parameters"], *run["exact_match"][:6]) for run in longer],
    header=("d", "steps", "parameters", *(f"{n} date{'s' * (n > 1)}" for n in range(1, 7))),
    caption="Exact match of the fixed context vector with more numbers and more training (authors, one seed each)",
    digits=2,
)

# %% [markdown]
# So the claim is about a **fixed budget**: with the same examples and steps, exact match falls with the length of the sentence. More of both
# buys length at a poor rate: ten times the parameters and five times the training move the knee from one date to three. Notebook 02 changes one thing, lets the decoder look back at all encoder states, and asks the same question on the same test set.

# %% [markdown]
# ### The forgotten shift, run
#
# Question 01.4 was a prediction. Here is the run: the same model, its decoder fed with the targets themselves.

# %%
seed_everything(0)
peeking = FixedContextTranslator(
    len(corpus.source_vocab), len(corpus.target_vocab), d=64, shift=lambda targets, bos_id: targets
)
copying = experiments.train_translator(peeking, corpus, steps=200, label="forgotten shift")
example = corpus.test[1][1]
(said,) = translate(peeking, [example.source], corpus, decode=write, max_words=8)
print(f"wanted  {' '.join(example.target)}\nsaid    {' '.join(said)}")
claim(
    "after a fifth of the steps the loss is below a tenth of the honest model's",
    copying.final_loss < 0.1 * history.final_loss,
)
claim("and the translation is wrong", tuple(said) != example.target)

# %% [markdown]
# ## 6 How much fits? It depends on the size
#
# To see the vector fill up, take the task down to its core: copy `n` random digits through a vector of `d` numbers.
# The encoder is your `seq2seq_encode`.

# %% [markdown] question="01.7"
# **Predict.** The vector grows 16-fold, from 4 to 64 numbers. The length at which half of the copies are still perfect grows ...
#
# - a) about 16-fold, in proportion to the size
# - b) clearly, but much less than 16-fold
# - c) not at all
#
# ### BEGIN ANSWER
# right: b
# a: Room would allow for that. But digits must be written in and read out in order, through the same matrix again and
#   again, and training gets no further in 600 steps.
# b: Yes. More numbers help, with falling returns at a fixed training budget.
# c: Compare the curves below: each is to the right of the one before.
# ### END ANSWER

# %%
encode = use(seq2seq_encode)
copied = {d: experiments.copy_capacity(d, encode=encode) for d in (4, 16, 64)}
display(
    plots.lines(
        list(range(1, 11)),
        {f"{d} numbers": list(exact.values()) for d, exact in copied.items()},
        xlabel="digits to copy",
        ylabel="exact match",
        title="A wider vector carries more digits",
        ylim=(0, 1.05),
        hline=(0.5, "half of the copies perfect"),
    )
)
half = {d: experiments.half_length(exact) for d, exact in copied.items()}
display(
    plots.table(
        [
            (
                d,
                half.get(d),
                measured.spread([experiments.half_length(dict(enumerate(run, 1))) for run in runs], 1),
            )
            for d, runs in ((int(d), runs) for d, runs in measured.load("copy_capacity")["exact_match"].items())
        ],
        header=("numbers in the vector", "length at half, this run", "authors, three seeds"),
        caption="How many digits come through: the length at which exact match falls through one half",
        digits=2,
    )
)
claim("a wider vector carries more digits", half[4] < half[16] < half[64])
claim("16 times the numbers carry less than 4 times the digits", half[64] < 4 * half[4])

# %% [markdown]
# **What you see.** From 4 to 64 numbers the half-way point moves from about 2 digits to about 4½. Every curve falls:
# After 600 steps, for every size there is a length that does not get through. That is the **bottleneck**: one vector of fixed size for inputs of any size.

# %% [markdown]
# ## 7 Waiting for the step before
#
# To compute $h_t$ you need $h_{t-1}$. Inside a step everything can be done in parallel; across steps nothing can. A GPU with thousands of
# processors still has to go through a sentence word by word.
#
# We can count this instead of believing it: torch records which result was made from which. The cell below finds the longest chain of matrix
# products that wait for each other, and, beside it, measures the time of one forward and backward pass.

# %% [markdown] question="01.8"
# **Predict.** A sequence has 256 positions. How many matrix products have to wait for each other in an RNN, and how many in a layer of attention?
#
# - a) 256 and 256: both read 256 positions
# - b) 256 and 4
# - c) 256 and 8: attention halves the sequence again and again
#
# ### BEGIN ANSWER
# right: b
# a: Attention reads them all, but in one product: no position has to wait for another.
# b: Yes: project, score, mix, project again, whatever the length. The RNN's products wait in a row, one for each position.
# c: Halving (or doubling) is what the dilated convolution does: its chain grows like the logarithm of the length.
# ### END ANSWER

# %%
lengths = (16, 64, 256)
W_in, W_rec = torch.randn(8, 8, requires_grad=True), torch.randn(8, 8, requires_grad=True)
chains = []
for T in lengths:
    x = torch.randn(2, T, 8)
    _, state = encode(x, torch.full((2,), T), W_in, W_rec, torch.zeros(8))
    cnn = experiments.LAYERS["dilated CNN"](8, math.ceil(math.log2(T)))  # as many layers as it takes to see all T
    outputs = {"RNN (your encoder)": state, "dilated CNN": cnn(x), "attention": experiments.LAYERS["attention"](8)(x)}
    chains.append({name: experiments.longest_chain(out) for name, out in outputs.items()})
display(
    plots.table(
        [(name, *(chain[name] for chain in chains)) for name in chains[0]],
        header=("layer", *(f"T = {T}" for T in lengths)),
        caption="Matrix products that have to wait for each other",
    )
)
times = (32, 128, 512, 1024)
seconds = {}
for name in ("LSTM", "dilated CNN", "attention"):
    layer = experiments.LAYERS[name](64)
    seconds[name] = [experiments.layer_seconds(layer, T) for T in times]
display(
    plots.table(
        [
            (name, *(1000 * s for s in values), experiments.exponent(times[1:], values[1:]))
            for name, values in seconds.items()
        ],
        header=("layer", *(f"T = {T}, ms" for T in times), "power of T, from 128 on"),
        caption="Time of one forward and backward pass on one CPU core (batch 4, 64 features)",
        digits=2,
    )
)
claim("the RNN's chain is as long as the sequence", [c["RNN (your encoder)"] for c in chains] == list(lengths))
claim("attention's chain has the same length for every sequence", len({c["attention"] for c in chains}) == 1)

# %% [markdown]
# **What you see.** The chain of the RNN is exactly $T$, that of the CNN grows like $\log_2 T$, that of attention is 4
# (project, score, mix, project) at any length. On a machine that can do everything at once, the chain *is* the time.
#
# On one CPU core it is not. All the work has to be done anyway, and attention has more of it: the LSTM's time grows about in proportion to $T$, attention's faster and faster, towards the square, because every position meets every other. Short sequences are
# about equally fast, long ones much slower with attention. So we teach the count and show the times: **"attention is faster" is a statement about parallel hardware.**

# %% [markdown]
# ## 8 What the decoder would need
#
# Put the three limits side by side, for two words that stand $k$ apart in a sentence of length $T$:
#
# | | RNN | what we would like |
# |---|---|---|
# | steps between the two words | $k$ | 1 |
# | room for the sentence | $H$ numbers, whatever $T$ | grows with $T$ |
# | products that must wait for each other | $T$ | a constant |
#
# Attention fulfils all three wishes, and the bill comes in notebook 05. But the idea is simple enough to state now: *keep all
# encoder states, and let the decoder look back at the ones it needs.*

# %% [markdown] written="01.W"
# **Explain in your own words** (about five sentences). A friend says: "RNN translators fail on long sentences because RNNs forget old words.
# An LSTM fixes that, so attention was never needed." What is right in this, what is not, and which of your measurements show it?
#
# ### BEGIN GUIDE
# Full marks for these four points, in any order:
# 1. Right: influence dies exponentially with distance in a plain RNN (section 3: about 1e-18 at 50 steps), and gates slow this down (1 point).
# 2. Two different problems: forgetting over distance, and the fixed size of the context vector. Gates help with the first only (2 points).
# 3. Evidence: the translator of section 5 *is* an LSTM, its encoder even reads in both directions, and it still fails from two dates on; the
#    copy task shows that capacity depends on the size of the vector (1 point).
# 4. A limit of the claim: a larger or longer-trained model moves the knee, so the statement holds at a fixed budget; or: sequential time
#    is a third problem that gates do not touch (1 point).
# ### END GUIDE

# %% [markdown]
# ## Recap
#
# - A **recurrent neural network** reads one item at a time and keeps a **state** of fixed size.
# - **Sequence to sequence**: an **encoder** makes a **context vector**, a **decoder** writes from it. **Teacher forcing** feeds the right words while training; **greedy decoding** feeds the model's own.
# - **Bottleneck**: the context vector has the same size for every sentence. At a fixed budget, exact match fell from almost 1 at one date to 0 at three.
# - **Linear interaction distance**: influence passes through every step between and dies exponentially; gates (GRU, LSTM) slow this down, short paths avoid it.
# - **Sequential time**: $h_t$ needs $h_{t-1}$; the chain of dependent products is as long as the sequence.
#
# **Sources.** Cho et al. 2014, *Learning phrase representations using RNN encoder–decoder* (encoder–decoder, GRU) · Sutskever, Vinyals and Le 2014,
# *Sequence to sequence learning with neural networks* · Hochreiter and Schmidhuber 1997, *Long short-term memory* · Gers, Schmidhuber and Cummins 2000, *Learning to forget* (the forget gate) · Bengio, Simard and Frasconi
# 1994, *Learning long-term dependencies with gradient descent is difficult* · Jozefowicz, Zaremba and Sutskever 2015 (forget bias) · Williams and Zipser 1989
# (teacher forcing). Dates: Unicode CLDR through Babel (BSD licence).

# %% [markdown]
# ### Your questions so far

# %% questions="01"
