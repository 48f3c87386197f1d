# Lesson 02. Maintainers: this text is the only hand-written form of the notebook; `course build` makes the rest.

# %% [markdown]
# # 02 Attention: look back at everything
#
# **The question.** *What if the decoder may look back?*
#
# In notebook 01 a translator squeezed every sentence into 64 numbers and failed from two dates on. Now the encoder keeps all its
# states, one for each source word, and the decoder looks back at them each time it writes a word. Nobody tells it
# where to look. By the end of this notebook you will have built that mechanism three times: as it was invented, as a step of a decoder, and as
# the general operator on which all later models stand.
#
# **You will be able to**
# - compute alignment scores, attention weights and a context vector, by hand, by loop and by matrix product;
# - explain why the simplest score cannot work, and why scores are divided by $\sqrt{d_k}$;
# - read an attention map, judge it against a known answer, and say what it does not prove.
#
# **You should know** notebook 01 (encoder, decoder, teacher forcing), softmax, gradients.
# **Time** about two hours; running every cell takes about a minute.

# %%
try:
    from course_utils import answer, check, claim, question_points, setup, use
except ModuleNotFoundError as missing:
    raise ImportError(
        f"This kernel lacks {missing.name}. Start JupyterLab with `python3 course.py lab` (Windows: `py -3 course.py lab`) "
        "from the course folder, or in an editor, choose the Python in the course's .venv as the kernel."
    ) from None

setup("02")

import math
import statistics

import torch
import torch.nn.functional as F
from IPython.display import display

from course_utils import attention as library
from course_utils import experiments, measured, plots, scoreboard, widgets
from course_utils.data.batches import make_batch
from course_utils.data.dates import date_corpus
from course_utils.data.vocab import Vocab
from course_utils.evaluation import alignment_accuracy, translation_scores
from course_utils.seq2seq import AttentionTranslator
from course_utils.training import n_parameters, seed_everything

# %% [markdown]
# ## 1 One context vector for each word
#
# The encoder's states are $h_1, \dots, h_T$, one for each source word. The decoder is in state $s$ and about to write a word.
# Three steps give it a context vector made for this word:
#
# $$
# \begin{aligned}
# e_i &= f_{\text{att}}(s, h_i) && \text{alignment score of source word } i, \text{ a number} \\
# a_i &= \frac{\exp(e_i)}{\sum_j \exp(e_j)} && \text{attention weights: positive, summing to one} \\
# c &= \sum_i a_i h_i && \text{context vector}; \; s, h_i, c \in \mathbb{R}^{D}
# \end{aligned}
# $$
#
# The state that asks is called the **query**, the states that are compared with it are the **keys**. Small numbers first, with the word
# beside each row; the score here is a plain dot product.

# %%
words = ["Thursday,", "March", "5,"]
keys = torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])  # (T, D): one state for each source word
query = torch.tensor([0.0, 1.5])  # (D): the decoder is about to write the month

rows, scores = [], []
for key in keys:
    scores.append(sum(q * k for q, k in zip(query.tolist(), key.tolist(), strict=True)))
total = sum(math.exp(e) for e in scores)
weights = [math.exp(e) / total for e in scores]
context = [sum(w * k for w, k in zip(weights, keys[:, i].tolist(), strict=True)) for i in range(2)]
display(
    plots.table(
        [
            (word, *key.tolist(), e, math.exp(e), w)
            for word, key, e, w in zip(words, keys, scores, weights, strict=True)
        ],
        header=("source word", "key[0]", "key[1]", "score", "exp(score)", "weight"),
        caption=f"Query (0, 1.5). The context is the weighted sum of the keys: ({context[0]:.2f}, {context[1]:.2f})",
        digits=2,
    )
)
# The same as two matrix products:
weights_matrix = (keys @ query).softmax(dim=0)
claim("loop and matrix form give the same weights", torch.allclose(weights_matrix, torch.tensor(weights)))
claim("loop and matrix form give the same context", torch.allclose(weights_matrix @ keys, torch.tensor(context)))

# %% [markdown]
# "March" gets most of the weight, so the context is close to the key of "March". It is a *mixture*: always between the keys, never outside. And every
# operation in it is smooth, so a gradient can flow from the loss, through the weights, into the scores. That is all it
# takes to learn where to look.
#
# ## 2 Which score?
#
# The simplest learnable score puts query and key behind one another and applies one linear layer, $e_i = w \cdot [s; h_i]$
# with $w \in \mathbb{R}^{2D}$.

# %% [markdown] question="02.1"
# **Predict.** A decoder uses this linear score. Its state $s$ changes from one word to the next. How do the attention weights change?
#
# - a) not at all
# - b) they follow the state, which is the purpose
# - c) they become uniform
#
# ### BEGIN ANSWER
# right: a
# a: Yes: $w \cdot [s; h_i] = w_s \cdot s + w_h \cdot h_i$. The first part is the same number for all source words, and a softmax does not
#   see a number that is added to all scores. The query cancels.
# b: Write the score as two dot products, $w_s \cdot s + w_h \cdot h_i$. Which part tells one source word from another?
# c: The part $w_h \cdot h_i$ still differs between source words, so the weights are not uniform. But what does $s$ contribute?
# ### END ANSWER

# %%
seed_everything(0)
D = 8
states, w = torch.randn(1, 6, D), torch.randn(2 * D)
query_1, query_2 = torch.randn(1, D), torch.randn(1, D)
linear_1 = library.linear_score(query_1, states, w).softmax(dim=-1)
linear_2 = library.linear_score(query_2, states, w).softmax(dim=-1)
W_q, W_k, v = torch.randn(D, D), torch.randn(D, D), torch.randn(D)
_, hidden_1 = library.additive_attention(query_1, states, W_q, W_k, v)  # the repaired score, see below
_, hidden_2 = library.additive_attention(query_2, states, W_q, W_k, v)
display(
    plots.table(
        [
            ("linear, query 1", *linear_1[0].tolist()),
            ("linear, query 2", *linear_2[0].tolist()),
            ("with a tanh layer, query 1", *hidden_1[0].tolist()),
            ("with a tanh layer, query 2", *hidden_2[0].tolist()),
        ],
        header=("score", *(f"word {i}" for i in range(1, 7))),
        caption="Attention weights of two different queries over the same six states",
        digits=2,
    )
)
claim("linear score: another query, the same weights", torch.allclose(linear_1, linear_2, atol=1e-6))
claim("with a tanh layer the query matters", (hidden_1 - hidden_2).abs().max() > 0.05)

# %% [markdown]
# **What you see.** With one linear layer the two rows are equal: the query has no say, and every target word would get the *same* context, which is the fixed vector of notebook 01 again. Multiplying query and key repairs it (the dot product of
# section 1 does that). So does a non-linearity between the sum and the score. That is the score of Bahdanau, Cho and Bengio (2015), in the paper that introduced attention to
# translation: a small network with one hidden $\tanh$ layer.
#
# $$
# \begin{aligned}
# e_i &= v \cdot \tanh(s\, W_q + h_i W_k)
# && W_q, W_k \in \mathbb{R}^{D \times A},\; v \in \mathbb{R}^{A}
# \end{aligned}
# $$
#
# Because the two projections are *added* it is called **additive attention**. Write it for a batch. A mask says which source words are real: True = may
# attend. Padding must get the weight zero, so hide it *before* the softmax.


# %% exercise="additive_attention" minutes=20 difficulty=2
def additive_attention(query, keys, W_q, W_k, v, mask=None):
    """Additive attention with one query for each sentence; the context is made of the keys.

    query (B, D), keys (B, T, D), W_q and W_k (D, A), v (A), mask (B, T) with True = may attend, or None.
    Returns the context (B, D) and the weights (B, T), which sum to one. A sentence whose mask is all False must give finite numbers.
    """
    ### BEGIN SOLUTION
    hidden = torch.tanh((query @ W_q).unsqueeze(1) + keys @ W_k)  # (B, T, A)
    scores = hidden @ v
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = scores.softmax(dim=-1)
    context = torch.einsum("bt,btd->bd", weights, keys)
    return context, weights
    ### END SOLUTION


# %% [markdown] hints="additive_attention"
# 1. Shapes decide: the projected query is (B, A), the projected keys are (B, T, A). What must happen to the query before they can be added?
# 2. The tanh acts on the hidden vector, the dot product with `v` comes after it. To hide a word, which score becomes zero after `exp`?
# 3. `torch.tanh((query @ W_q).unsqueeze(1) + keys @ W_k) @ v`, `scores.masked_fill(~mask, torch.finfo(scores.dtype).min)` (with −∞ a row
#    that is all hidden would become NaN), softmax over the last axis, and the weighted sum of the *keys*.

# %%
attention = use(additive_attention)
context, weights = attention(query_1, states, W_q, W_k, v)
claim("the function gives the weights of the cell above", torch.allclose(weights, hidden_1, atol=1e-6))
claim("the weights sum to one", torch.allclose(weights.sum(dim=-1), torch.ones(1)))

# %% [markdown]
# ## 3 The decoder's step
#
# The context vector enters the decoder twice: it is read together with the previous word, and it helps to choose the next one. With the
# dot product as score, one step of a decoder is
#
# $$
# \begin{aligned}
# e_i &= h \cdot h^{\text{enc}}_i, \quad a = \operatorname{softmax}(e), \quad c = \textstyle\sum_i a_i h^{\text{enc}}_i
# && h, c \in \mathbb{R}^{H} \text{ (the state before the step asks)} \\
# h' &= \tanh([y; c]\, W_x + h W_h + b) && y \in \mathbb{R}^{D},\; W_x \in \mathbb{R}^{(D+H) \times H} \\
# \text{logits} &= [h'; c]\, W_o + b_o && W_o \in \mathbb{R}^{2H \times V}
# \end{aligned}
# $$


# %% exercise="decode_step" minutes=20 difficulty=2
def decode_step(y_emb, h, enc_out, enc_mask, p):
    """One step of a decoder with dot-product attention.

    y_emb (B, D): the previous word; h (B, H): the state before the step; enc_out (B, T, H), enc_mask (B, T).
    p: dict with W_x (D+H, H), W_h (H, H), b (H), W_o (2H, V), b_o (V).
    Returns logits (B, V), the next state (B, H) and the attention weights (B, T).
    """
    ### BEGIN SOLUTION
    scores = (enc_out @ h.unsqueeze(-1)).squeeze(-1)
    scores = scores.masked_fill(~enc_mask, torch.finfo(scores.dtype).min)
    weights = scores.softmax(dim=-1)
    context = (weights.unsqueeze(1) @ enc_out).squeeze(1)
    h_next = torch.tanh(torch.cat([y_emb, context], dim=-1) @ p["W_x"] + h @ p["W_h"] + p["b"])
    logits = torch.cat([h_next, context], dim=-1) @ p["W_o"] + p["b_o"]
    return logits, h_next, weights
    ### END SOLUTION


# %% [markdown] hints="decode_step"
# 1. Who asks? The state that comes in. Who answers? The encoder's states. In which order do the formulas put word and context, and new state and context?
# 2. Four stages: scores and mask, softmax and context, new state, logits. The new state is what the next step starts from, so
#    it is what you return.
# 3. Scores: `(enc_out @ h.unsqueeze(-1)).squeeze(-1)`. New state: `torch.cat([y_emb, context], dim=-1) @ p["W_x"] + ...`. Logits:
#    `torch.cat([h_next, context], dim=-1) @ p["W_o"] + p["b_o"]`.

# %%
decode = use(decode_step)
seed_everything(1)
B, D, H, T, V = 2, 3, 4, 5, 7
p = {
    name: torch.randn(*shape)
    for name, shape in {"W_x": (D + H, H), "W_h": (H, H), "b": (H,), "W_o": (2 * H, V), "b_o": (V,)}.items()
}
logits, h_next, weights = decode(
    torch.randn(B, D), torch.randn(B, H), torch.randn(B, T, H), torch.tensor([[True] * 5, [True] * 3 + [False] * 2]), p
)
claim(
    "one step gives scores for 7 words, a new state of 4 numbers, weights for 5 source words",
    (logits.shape, h_next.shape, weights.shape) == ((2, 7), (2, 4), (2, 5)),
)
claim("the two padded words of the second sentence get no weight", weights[1, 3:].abs().max() == 0)

# %% [markdown]
# ## 4 Does it remove the bottleneck?
#
# The same task as in notebook 01, the same sentences in the same order, the same 1,000 steps, about the same number of parameters. One change: the
# decoder looks back with additive attention, through *your* `additive_attention` if it passes.

# %% [markdown] question="02.2"
# **Predict.** The model with a fixed vector reached an exact match of about 1.00 at one date and 0 from three dates on. What does the model with attention
# reach at six dates, the longest sentences in training, and at eight?
#
# - a) nearly 1 at six and nearly 1 at eight: attention has no limit of length
# - b) nearly 1 at six, close to 0 at eight
# - c) about one half at six, a little less at eight
#
# ### BEGIN ANSWER
# right: b
# a: It has no limit of *capacity*. But has it ever seen a seventh date? What it has learned must also apply there.
# b: Yes. Inside the lengths it was trained on the bottleneck is gone. Beyond them it fails, though nothing has become too
#   small: it has never had to look that far. Notebook 03 comes back to this.
# c: The room for the sentence now grows with the sentence. Nothing gets fuller at six dates than at one.
# ### END ANSWER

# %%
corpus = date_corpus("hu", seed=0)  # as in notebook 01
probe = corpus.test[3]


def alignment_now(model):
    """Alignment accuracy on the sentences of three dates, judged against the gold alignment."""
    return alignment_accuracy(model.forward_with_weights(make_batch(probe, corpus))[1], probe)


seed_everything(0)
shift, loss = use("shift_right"), use("lm_loss")  # your own from notebook 01, where they passed
model = AttentionTranslator(len(corpus.source_vocab), len(corpus.target_vocab), d=64, attention=attention, shift=shift)
history = experiments.train_translator(
    model, corpus, steps=1000, loss=loss, label="additive attention", measure=alignment_now, measure_every=100
)
scores = translation_scores(model, corpus)

# %%
board = scoreboard.load("02")
board.add(scoreboard.line("additive attention", scores, n_parameters(model), history))
display(board)
# The fixed vector's median over the authors' three seeds, for each number of dates.
without = [
    statistics.median(runs) for runs in zip(*measured.load("scoreboard")["lines"][0]["exact_match"], strict=True)
]
display(
    plots.lines(
        list(scores.exact_match),
        {
            "additive attention": list(scores.exact_match.values()),
            "fixed context vector (notebook 01)": without,
        },
        xlabel="dates in the sentence (training: 1 to 6)",
        ylabel="exact match",
        title="Looking back removes the bottleneck, inside the trained lengths",
        ylim=(0, 1.05),
    )
)
claim(
    "exact match is at least 0.95 at every length seen in training",
    min(scores.exact_match[n] for n in range(1, 7)) >= 0.95,
)
claim("at six dates attention is at least 0.9 above the fixed vector", scores.exact_match[6] - without[5] >= 0.9)
claim("at eight dates, beyond training, exact match is below 0.1", scores.exact_match[8] < 0.1)

# %% [markdown]
# **What you see.** The line is flat at the top from one to six dates, where the fixed vector had fallen to zero by three. Same
# data, same steps, ten per cent more parameters.
#
# **What you might wrongly conclude.** "Attention generalises to any length." At seven and eight dates hardly a sentence is right, though more of the single words are than without attention. The
# *mechanism* works for any length; what the model has *learned* does not.
#
# ## 5 Nobody told it where to look
#
# The loss mentions words only. Since our sentences are made from known dates, we happen to know the **gold alignment**: which
# source word each target word says. The model never sees it; we use it as a judge.

# %% [markdown] question="02.3"
# **Predict.** English writes *weekday, month day, year*; Hungarian writes *year month day, weekday*. In a map with Hungarian words as
# rows (queries) and English words as columns (keys), where are the large weights of one date?
#
# - a) on the diagonal: first word to first word, and so on
# - b) the first row on the last column, the last row on the first, the two in the middle on the diagonal
# - c) spread evenly: each Hungarian word needs the whole sentence
#
# ### BEGIN ANSWER
# right: b
# a: That is right for a language with English word order. The Hungarian sentence begins with the year. Where is the year in English?
# b: Yes: year and weekday change places, month and day stay between them.
# c: A mixture of all words would be as blurred as the old context vector. The weights can be sharp, and training makes them so.
# ### END ANSWER

# %%
example = corpus.test[2][0]
with torch.no_grad():
    _, example_weights = model.forward_with_weights(make_batch([example], corpus))
display(
    plots.heatmap(
        example_weights[0],
        queries=[*example.target, "<eos>"],
        keys=[*example.source, "<eos>"],
        title="Where the decoder looks while it writes",
        gold=[*example.alignment, None],
        caption="Small squares: the gold alignment, which the model never saw",
    )
)
display(
    plots.lines(
        [step for step, _ in history.measured],
        {"alignment accuracy": [share for _, share in history.measured]},
        xlabel="training step",
        ylabel="words on their gold word",
        title="The alignment is learned from the translation loss alone",
        ylim=(0, 1.05),
        hline=(1 / (len(probe[0].source) + 1), "a random guess"),
    )
)
accuracy = scores.mean_alignment(up_to=6)
claim("at least 0.9 of the target words have their largest weight on the gold source word", accuracy >= 0.9)
claim("before training it was less than 0.2", history.measured[0][1] < 0.2)

# %% [markdown]
# **What you see.** Inside each date the corners are swapped (year and weekday) and the middle stays on the diagonal; from date to date the map follows the diagonal. The second figure puts a number on
# it: from guessing to nearly every word, within the first few hundred steps. How? Every operation between the loss and the scores is differentiable. If a
# little more weight on "March" makes "március" more likely, the gradient says so, and training follows.
#
# Walk through the sentence as the decoder does, one target word at a time. A line is as wide as its weight; below the picture it says how much of the weight has moved since the word before.

# %%
alignment = widgets.AdditiveAlignment(
    example_weights[0],
    [*example.source, "<eos>"],
    [*example.target, "<eos>"],
    gold=[*example.alignment, None],
    predict=(
        "The decoder goes on to the next target word. How much of the weight moves to other source words, on average?",
        ["hardly any: neighbours need much the same", "about half of it", "nearly all of it"],
    ),
)
alignment

# %%
rows = example_weights[0]  # (target words, source words)
elsewhere = ((rows[1:] - rows[:-1]).abs().sum(dim=1) / 2).mean().item()  # what one place loses, another gains
display(
    alignment.compare(
        "c",
        f"On average {elsewhere:.0%} of the weight moves. {len(rows)} words, {len(rows)} context vectors, each made anew; "
        "the encoder of notebook 01 had one for the whole sentence.",
    )
)
claim("every row of weights sums to one", torch.allclose(rows.sum(dim=1), torch.ones(len(rows)), atol=1e-5))
claim("from word to word at least three quarters of the weight moves", elsewhere >= 0.75)

# %% [markdown]
# If that is right, a language with *English* word order must give a plain **diagonal**. Filipino has it: "Huwebes, Marso 5, 2026".

# %%
filipino = date_corpus("fil", n_train=3000, max_dates=2, max_test_dates=2, seed=0)
seed_everything(0)
diagonal = AttentionTranslator(len(filipino.source_vocab), len(filipino.target_vocab), attention=attention)
experiments.train_translator(diagonal, filipino, steps=300, lr=8e-3, label="English to Filipino, up to two dates")
example = filipino.test[2][0]
with torch.no_grad():
    _, weights = diagonal.forward_with_weights(make_batch([example], filipino))
display(
    plots.heatmap(
        weights[0],
        queries=[*example.target, "<eos>"],
        keys=[*example.source, "<eos>"],
        title="The same word order gives a diagonal",
        gold=[*example.alignment, None],
    )
)
languages = measured.load("short_sentences")["language"]
display(
    plots.table(
        [
            (
                name,
                measured.spread([run["exact_match"][-1][1][1] for run in languages[code]]),
                measured.spread([run["alignment"] for run in languages[code]]),
            )
            for code, name in (("hu", "Hungarian"), ("fil", "Filipino"), ("it", "Italian"))
        ],
        header=("English to", "exact match at two dates", "alignment accuracy"),
        caption="The authors' runs of 300 steps, three seeds each, lowest … highest",
    )
)
filipino_alignment = translation_scores(diagonal, filipino).mean_alignment(up_to=2)
claim("Filipino: at least 0.9 of the words read their gold word", filipino_alignment >= 0.9)

# %% [markdown]
# **Look at the table.** In Filipino and Italian some seeds translate *every* sentence without a mistake although not every word reads its gold
# word. Can that be? The encoder reads in both directions: the state at one word also knows its neighbours. So the decoder can get
# "Marso" from the state at the word *beside* "March".
#
# A test that goes beyond looking: hide single source words from the attention, with the mask, and see what breaks.

# %% [markdown] question="02.4"
# **Predict.** We hide the English year from the attention (the encoder has still read it). How many Hungarian years are still right? (Always saying the commonest year would be right in about 7 of 100.)
#
# - a) none above guessing: the decoder cannot look at the year any more
# - b) all: the attention weights do not matter
# - c) clearly more than guessing, and far from all: the neighbours' states know part of it
#
# ### BEGIN ANSWER
# right: c
# a: It cannot look at the state *at* the year. But the encoder is recurrent: other states have read the year, too.
# b: Look at the table: hiding the word that is read breaks its translation almost completely.
# c: Yes. A weight says where the model *reads*. It does not say that the information is nowhere else.
# ### END ANSWER

# %%
singles = make_batch(corpus.test[1], corpus)
rows = []
with torch.no_grad():
    keys, summary, _ = model.encode(singles)
    inputs = shift(singles.target, Vocab.bos_id)  # teacher forcing: the words before are the right ones
    for hidden, field in enumerate(("weekday", "month", "day", "year")):  # the order of the English words
        mask = singles.source_mask.clone()
        mask[:, hidden] = False
        right = model.decode(inputs, (keys, summary, mask)).argmax(dim=-1) == singles.target
        where = corpus.test[1][0].alignment.index(hidden)  # the Hungarian word that says this field
        others = [t for t in range(4) if t != where]
        commonest = singles.target[:, where].bincount().max().item() / len(singles.target)
        rows.append((field, right[:, where].double().mean().item(), commonest, right[:, others].double().mean().item()))
display(
    plots.table(
        rows,
        header=(
            "hidden English word",
            "its own translation right",
            "always the commonest word",
            "the three other words right",
        ),
        caption="One source word is hidden from the attention (200 sentences of one date, teacher forcing)",
        digits=2,
    )
)
claim(
    "hiding a word breaks its own translation and spares the others",
    all(own < 0.5 and rest > 0.9 for _, own, _, rest in rows),
)
claim("a hidden year is still right more often than the commonest year would be", rows[3][1] > rows[3][2])

# %% [markdown]
# **What you see.** Hiding the word that is read breaks its own translation and spares the others, so the map does say something true about this
# model. But the hidden year comes through about twice as often as by guessing: some of it is stored elsewhere. **What you might wrongly conclude.** "Attention weights explain the model." They are evidence about *where it reads*, not proof
# of *why*: what a state holds is not only its own word. When you see an attention map without a test, ask for one.
#
# ## 6 Where does the decoder start?
#
# The decoder needs a first state. Three choices are common: the encoder's last state, a linear map of it, or zeros.

# %% [markdown] question="02.5"
# **Predict.** The first state is set to zeros: the decoder begins knowing nothing of the sentence. What happens to exact match, on sentences of up to two dates
# after 200 steps?
#
# - a) it stays near 0
# - b) it is clearly worse than with the other two choices
# - c) about the same: all three translate nearly everything
#
# ### BEGIN ANSWER
# right: c
# a: That would be so with a fixed context vector. Here the decoder can look at everything in its very first step.
# b: It learns a little more slowly at first. Look at the whole table.
# c: Yes: it starts a little behind and catches up. With attention the state no longer has to carry the sentence, only what has been said so far.
# ### END ANSWER

# %%
short = date_corpus("hu", n_train=3000, max_dates=2, max_test_dates=2, seed=0)
rows = []
for start, name in (("last", "the encoder's last state"), ("linear", "a linear map of it"), ("zeros", "zeros")):
    seed_everything(0)
    small = AttentionTranslator(len(short.source_vocab), len(short.target_vocab), attention=attention, start=start)
    run = experiments.train_translator(
        small,
        short,
        steps=200,
        lr=8e-3,
        label=f"start from {name}",
        measure_every=50,
        measure=lambda m: translation_scores(m, short).exact_match[2],
    )
    rows.append((name, *(exact for _, exact in run.measured[1:])))
display(
    plots.table(
        rows,
        header=("first state", *(f"{step} steps" for step, _ in run.measured[1:])),
        caption="Exact match at two dates, by training step",
        digits=2,
    )
)
claim("all three choices reach at least 0.9 at two dates", min(row[-1] for row in rows) >= 0.9)

# %% [markdown]
# **What you see.** After 200 steps hardly a difference is left. The choice moves the first hundred and fifty steps, not the result.
#
# ## 7 Queries, keys, values: attention as an operator
#
# Forget decoders for a moment. What have we built? Something asks (**query**), everything on offer has a label to compare with
# (**key**), and what is handed out is a mixture of contents (**value**). Each **data vector** on offer has a key, for the **similarity** with the query, and a value. Think of a library: you come with a question, compare it with the labels on the
# spines, and read most in the books whose labels match best. Or of a search engine: the query is matched with keywords, but
# what you get is the page. So far label and content were the same vector, the encoder's state. They need not be.
#
# Two more changes make it *the* operator of all later notebooks. The score becomes a **scaled dot product**, which is one matrix product for all pairs. And there are
# many queries at once:
#
# $$
# \begin{aligned}
# \operatorname{Attention}(Q, K, V) &= \operatorname{softmax}\!\left(\frac{Q K^{\top}}{\sqrt{d_k}}\right) V
# && Q \in \mathbb{R}^{T_q \times d_k},\; K \in \mathbb{R}^{T_k \times d_k},\; V \in \mathbb{R}^{T_k \times d_v}
# \end{aligned}
# $$
#
# The softmax runs over the keys: every *row* of weights sums to one. When queries come from one sequence and keys and values from another, as
# in our translator, it is called **cross-attention**; $T_q$ and $T_k$ may differ.


# %% exercise="scaled_dot_product_attention" minutes=20 difficulty=2
def scaled_dot_product_attention(q, k, v, mask=None):
    """Attention as one operator.

    q (..., Tq, d), k (..., Tk, d), v (..., Tk, dv); mask broadcasts to (..., Tq, Tk), True = may attend.
    Returns the outputs (..., Tq, dv) and the weights (..., Tq, Tk), whose rows sum to one. A query that may see nothing must get finite
    numbers.
    """
    ### BEGIN SOLUTION
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is None:
        weights = scores.softmax(dim=-1)
    else:
        lost = ~mask.any(dim=-1, keepdim=True)  # queries with nothing to see: no NaN, forward or backward
        scores = scores.masked_fill(~mask, float("-inf")).masked_fill(lost, 0.0)
        weights = scores.softmax(dim=-1).masked_fill(~mask, 0.0)
    return weights @ v, weights
    ### END SOLUTION


# %% [markdown] hints="scaled_dot_product_attention"
# 1. Which two axes must meet in the product, and over which axis of the result must weights sum to one? Count axes from the end: there may
#    be a batch axis, a head axis, or neither.
# 2. Scores have the shape (..., Tq, Tk). Hide keys *before* the softmax: which number becomes 0 after `exp`? What does a softmax make of a row in which everything is hidden?
# 3. `scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])`, `masked_fill(~mask, torch.finfo(scores.dtype).min)` (with −∞ a row that is all hidden becomes NaN), softmax over the last axis, `@ v`.

# %% [markdown]
# The ladder, each rung equal to the last: two nested loops over single numbers; two matrix products; your function on a batch.

# %%
attend = use(scaled_dot_product_attention)
seed_everything(0)
Tq, Tk, d, dv = 4, 6, 16, 3
Q, K, V = torch.randn(Tq, d), torch.randn(Tk, d), torch.randn(Tk, dv)

looped = torch.zeros(Tq, dv)
for i in range(Tq):
    e = torch.tensor([sum(Q[i, c] * K[j, c] for c in range(d)) / math.sqrt(d) for j in range(Tk)])
    a = e.exp() / e.exp().sum()
    for j in range(Tk):
        looped[i] += a[j] * V[j]

matrix = (Q @ K.T / math.sqrt(d)).softmax(dim=-1) @ V
batched, batched_weights = attend(Q.expand(5, Tq, d), K.expand(5, Tk, d), V.expand(5, Tk, dv))
claim("nested loops and two matrix products agree to 1e-6", torch.allclose(looped, matrix, atol=1e-6))
claim("your function on a batch of five agrees, too", torch.allclose(batched, matrix.expand(5, Tq, dv), atol=1e-6))
claim(
    "torch's own operator agrees",
    torch.allclose(batched, F.scaled_dot_product_attention(Q, K, V).expand(5, Tq, dv), atol=1e-6),
)

# %% [markdown]
# All steps of the formula, one after the other, for two queries and three keys. Every number of $q$, $k$ and $v$ can be changed. Go to step 5, and try to drive an output out of the range of the values.

# %%
steps = widgets.DotProductSteps()
steps

# %%
low, high = V.min(dim=0).values, V.max(dim=0).values  # of each column of values, from the ladder above
display(
    steps.compare(
        "b",
        "Weights are never negative and sum to one, so an output is a weighted mean of the values, however large a score "
        "is. At the very most one weight is 1, and the output is one of the values.",
    )
)
claim(
    "every output lies between the smallest and the largest value of its column",
    bool(((low <= matrix) & (matrix <= high)).all()),
)
large = attend(100 * Q, K, V)[0]
claim("also with scores a hundred times as large", bool(((low - 1e-5 <= large) & (large <= high + 1e-5)).all()))

# %% [markdown] question="02.6"
# **Predict.** 64 queries meet 64 keys of 64 features: 4,096 dot products. A Python loop over all pairs calls torch's dot product for each. How much faster is
# one matrix product `q @ k.T`?
#
# - a) about as fast: the multiplications are the same
# - b) about twice as fast
# - c) more than a hundred times as fast
#
# ### BEGIN ANSWER
# right: c
# a: The multiplications are the same; what differs is everything around them. 4,096 calls from Python cost far more than the arithmetic.
# b: Think of how long a single call from Python takes, and how often it happens.
# c: Yes, even on one core. On a GPU the factor is larger still, since all dot products can be computed at the same time.
# ### END ANSWER

# %%
q, k = torch.randn(64, 64), torch.randn(64, 64)


def all_pairs_by_loop():
    return torch.stack([torch.stack([torch.dot(q_i, k_j) for k_j in k]) for q_i in q])


ratio = experiments.median_seconds(all_pairs_by_loop, 3) / experiments.median_seconds(lambda: q @ k.T, 100)
print(f"The matrix product is about {float(f'{ratio:.1g}'):,.0f} times as fast as the loop, on one core.")
claim("loop and matrix product agree to 1e-4", torch.allclose(all_pairs_by_loop(), q @ k.T, atol=1e-4))
claim("the matrix product is more than 100 times as fast", ratio > 100)

# %% [markdown]
# ## 8 Why divide by $\sqrt{d_k}$?
#
# A score is a sum of $d_k$ products. Take the entries of $q$ and $k$ independent, with mean 0 and variance 1. Each product
# has variance 1, so the sum has variance $d_k$:
#
# $$
# \begin{aligned}
# \operatorname{Var}(q \cdot k) &= \sum_{i=1}^{d_k} \operatorname{Var}(q_i k_i) = d_k
# && q, k \in \mathbb{R}^{d_k}
# \end{aligned}
# $$
#
# **Scores grow like $\sqrt{d_k}$**, although nothing about the words has changed. And a softmax only sees *differences* of scores.

# %% [markdown] question="02.7"
# **Predict.** One query meets 16 random keys. What happens to the largest attention weight when $d_k$ goes from 1 to 1,024 and nothing is divided?
#
# - a) it stays near 1/16
# - b) it grows towards 1
# - c) it shrinks towards 0
#
# ### BEGIN ANSWER
# right: b
# a: That would need scores that hardly differ. With $d_k$ = 1,024 their standard deviation is 32.
# b: Yes: among scores with a standard deviation of 32 one is far ahead, and the softmax picks it.
# c: Sixteen weights that sum to one cannot all be small.
# ### END ANSWER

# %%
generator = torch.Generator().manual_seed(0)
rows, largest = [], {}
for d_k in (1, 16, 64, 256, 1024):
    q = torch.randn(2000, 1, d_k, generator=generator)  # 2,000 random queries
    k = torch.randn(2000, 16, d_k, generator=generator)  # 16 random keys for each
    raw = (q @ k.transpose(-2, -1)).squeeze(1)
    for name, e in (("raw", raw), ("scaled", raw / math.sqrt(d_k))):
        a = e.softmax(dim=-1)
        entropy = -(a * a.clamp_min(1e-30).log()).sum(dim=-1).mean() / math.log(16)
        largest[d_k, name] = a.max(dim=-1).values.mean().item()
        rows.append((d_k, name, e.std().item(), largest[d_k, name], entropy.item(), (a * (1 - a)).mean().item()))
display(
    plots.table(
        rows,
        header=("d_k", "scores", "std of a score", "largest weight", "entropy (1 = uniform)", "mean slope a(1-a)"),
        caption="Random queries and keys: what the division does",
        digits=2,
    )
)
spread_of = {(d_k, name): std for d_k, name, std, *_ in rows}
claim(
    "raw scores spread like the square root of d_k, within 5 %",
    all(abs(spread_of[d_k, "raw"] / math.sqrt(d_k) - 1) < 0.05 for d_k in (1, 16, 64, 256, 1024)),
)
claim("raw, d_k = 1,024: the largest weight is above 0.9", largest[1024, "raw"] > 0.9)
claim(
    "scaled: the largest weight stays below 0.35 at every size",
    max(largest[d_k, "scaled"] for d_k in (16, 64, 256, 1024)) < 0.35,
)

# %% [markdown]
# **What you see.** Raw scores spread like $\sqrt{d_k}$ (about 4, 8, 16, 32), the largest weight climbs towards 1, and the mean slope of the softmax
# falls towards 0: a winner that wins by a mile has a slope of almost nothing. Divided by $\sqrt{d_k}$ the rows from 16 to 1,024 look the same. That is all the division is for.
#
# Try it. Change $d_k$, switch the division on and off, draw new numbers. A **temperature** is one more number that scores are divided by.

# %%
temperature = widgets.Temperature(
    256,
    predict=(
        "d_k = 256, and nothing is divided. Which temperature gives the same weights as the division by √d_k?",
        ["1: the weights are normalised anyway", "16", "256"],
    ),
)
temperature

# %%
e = (torch.randn(128, 1, 256, generator=generator) @ torch.randn(128, 256, 16, generator=generator)).squeeze(1)
display(
    temperature.compare(
        "b", "√256 = 16: the division *is* a temperature, chosen so that scores have a variance of one."
    )
)
claim("a temperature of 16 is the division", torch.equal((e / 16).softmax(-1), (e / math.sqrt(256)).softmax(-1)))
raw, divided = (scores.softmax(-1).max(dim=-1).values.mean() for scores in (e, e / 16))
claim(
    "128 other queries: the largest weight is above 0.8 without the division and below 0.4 with it",
    raw > 0.8 and divided < 0.4,
)

# %% [markdown]
# Does it matter for learning? One attention head looks words up in a small dictionary, through your function. Each of 16 data vectors is [key word; value word]; $K = X W_K$, $V = X W_V$, $q = x W_Q$ for the word asked for, and a linear layer names the value word. An
# example is *dead* when the loss hardly depends on any of its scores (the norm of that gradient is below 0.001): the softmax has decided before training began.

# %% [markdown] question="02.8"
# **Predict.** With $d_k = 256$ and no division, what share of the examples is dead at the start, and what does that do to training?
#
# - a) almost none; both train at the same speed
# - b) between a third and a half; training takes two to three times as many steps
# - c) all of them; it never learns
#
# ### BEGIN ANSWER
# right: b
# a: Look at the mean slope in the table above, at $d_k$ = 256, raw.
# b: Yes. The examples that are alive carry the training until the scores have calmed down.
# c: Many examples have two close scores by chance, and these still teach.
# ### END ANSWER

# %%
table = measured.load("scale")
start, curves = {}, {}
for name, scaled in (("scaled", True), ("not scaled", False)):
    start[name] = experiments.lookup_start(256, scaled=scaled, attention=attend)
    curves[name] = experiments.lookup_curve(256, scaled=scaled, steps=200, attention=attend)
steps_needed = {name: experiments.steps_to(curve) for name, curve in curves.items()}
display(
    plots.table(
        [(name, at.dead, at.median, at.weights, steps_needed[name]) for name, at in start.items()],
        header=(
            "scores, d_k = 256",
            "dead at the start",
            "median gradient of the scores",
            "gradient of W_Q",
            "steps to 90 %",
        ),
        caption="Looking words up with one attention head: at the start, and in training",
        digits=2,
    )
)
display(
    plots.table(
        [
            (
                d,
                name,
                measured.spread(table["dead_share"][f"{d} {name}"]),
                ", ".join("never" if s is None else str(s) for s in table["steps_to_90"][f"{d} {name}"]),
            )
            for d in (16, 64, 256)
            for name in ("scaled", "not scaled")
        ],
        header=("d_k", "scores", "dead at the start", "steps to 90 % (three seeds)"),
        caption="The same by the authors, for three sizes (at most 300 steps)",
    )
)
display(
    plots.lines(
        range(1, len(curves["scaled"]) + 1, 5),
        {name: experiments.moving_mean(curve)[::5] for name, curve in curves.items()},
        xlabel="training step",
        ylabel="accuracy (mean of ten steps)",
        title="Without the division, learning starts late",
        ylim=(0, 1.05),
    )
)
claim("scaled: no example is dead at the start", start["scaled"].dead < 0.01)
claim("not scaled: at least a quarter is", start["not scaled"].dead > 0.25)
claim(
    "without the division 90 % takes at least 1.5 times as many steps",
    (steps_needed["not scaled"] or math.inf) >= 1.5 * (steps_needed["scaled"] or math.inf),
)

# %% [markdown]
# **What you might wrongly conclude.** "Without scaling, all gradients are tiny." What shrinks is the gradient of the typical example with respect to its *scores*: a hundredth of the scaled one. The gradient of the *weights* is larger, not smaller: $q \cdot k$
# now carries a factor $\sqrt{d_k}$, which the chain rule hands on to $W_Q$. And dead examples are not the whole story: at $d_k = 16$ hardly any is dead, and unscaled training is slower all the same.
#
# ## 9 Why keys *and* values?
#
# In additive attention the keys were also what was averaged. In the dictionary task the two are different on purpose: find the pair
# by its first word, hand out its second. We train the same head with $V$ tied to $K$.

# %% [markdown] question="02.9"
# **Predict.** With only 8 features for each key, how does the head with $V = K$ compare with the one that has its own $W_V$, after 300 steps?
#
# - a) much worse
# - b) the same: the output layer can take apart what was mixed
# - c) better: fewer parameters, faster training
#
# ### BEGIN ANSWER
# right: a
# a: Yes: the same projection has to make a label that is found and a content that is useful, and what helps one disturbs the other.
# b: With enough training it can: after 3,000 steps the tied head is right, too. After 300 it is far behind, because one projection is pulled in two directions.
# c: It has fewer parameters, but every one of them is pulled in two directions.
# ### END ANSWER

# %%
tied = {}
for name, is_tied in (("own values", False), ("keys serve as values", True)):
    curve = experiments.lookup_curve(8, tied=is_tied, steps=300, attention=attend)
    tied[name] = sum(curve[-20:]) / len(curve[-20:])
display(
    plots.table(
        [
            (
                name,
                share,
                *(measured.spread(table["accuracy"][f"{d} {name}"]) for d in (8, 16, 32)),
                measured.spread(table["accuracy_3000"][name]),
            )
            for name, share in tied.items()
        ],
        header=("head", "8 features, this run", "authors: 8", "16", "32", "8, but 3,000 steps"),
        caption="Accuracy of the look-up after 300 steps (authors: three seeds, lowest … highest)",
        digits=2,
    )
)
claim(
    "with 8 features, values of their own are at least 0.3 better",
    tied["own values"] - tied["keys serve as values"] >= 0.3,
)

# %% [markdown]
# **What you see.** A key must *be found*, a value must *be useful*. In a narrow head one vector learns both roles much more slowly; at 32 features, or with ten times the steps, it gets there. What the separation buys here is speed of
# training, not room. It costs little, so every Transformer has it.

# %% [markdown] question="02.10"
# **Compute.** A query has the scores 2, 2, 2 and 2 with four keys, whose values are 0, 0, 0 and 1. What is the output of attention?
#
# ### BEGIN ANSWER
# right: 0.25
# tolerance: 0.001
# explain: Equal scores give equal weights, 1/4 each, whatever the scores are. The output is the mean of the values.
# ### END ANSWER

# %% [markdown] written="02.W"
# **Explain in your own words** (about five sentences), to somebody who knows notebook 01: why does attention remove the bottleneck, how can it learn where to
# look although nobody tells it, and what may one conclude from an attention map?
#
# ### BEGIN GUIDE
# Full marks for these four points:
# 1. The decoder gets a context vector of its own for each word, made from *all* encoder states, so the room grows with the sentence (1 point).
# 2. Scores, softmax and weighted sum are differentiable; the translation loss alone sends gradients into the scores (1 point), and the measured alignment rises
#    from guessing to nearly 1 (1 point).
# 3. A map shows where the model reads; it does not prove what the information is used for or that it is nowhere else: the hiding experiment, or perfect translations with
#    imperfect alignment (1 point).
# 4. A limit stated: fails beyond the trained lengths, or costs a score for every pair of words (1 point).
# ### END GUIDE

# %% [markdown]
# ## Recap
#
# - **Attention**: a **query** is compared with **keys** (**alignment scores**), a **softmax** makes **attention weights** of the scores, and the
#   **context vector** is the weighted sum of the **values**.
# - One linear layer as score cannot work: the query cancels. **Additive attention** has a hidden tanh layer; **scaled dot-product attention** divides by $\sqrt{d_k}$.
# - The bottleneck is gone inside the trained lengths: exact match at least 0.95 from one to six dates, at the same budget.
# - The **alignment** is learned without supervision, because all of it is **differentiable**. Maps are evidence of where a model reads, not proof of why.
# - As an **operator** on queries, keys and values, attention needs no RNN around it. With queries from one sequence and keys and values from another it is
#   **cross-attention**. Notebook 03 takes all three from the *same* sequence.
#
# **Sources.** Bahdanau, Cho and Bengio 2015, *Neural Machine Translation by Jointly Learning to Align and Translate* (you will also find the title misquoted) · Luong, Pham and
# Manning 2015, *Effective approaches to attention-based neural machine translation* (dot score) · Vaswani et al. 2017, *Attention is all you need*,
# section 3.2.1 and footnote 4 · Jain and Wallace 2019, *Attention is not explanation*, and Wiegreffe and Pinter 2019, *Attention is not not explanation*. Dates: Unicode CLDR
# through Babel (BSD licence).

# %% [markdown]
# ### Your questions so far

# %% questions="02"
