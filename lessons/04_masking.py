# Lesson 04. Maintainers: this text is the only hand-written form of the notebook; `course build` makes the rest.

# %% [markdown]
# # 04 Masking: no peeking, no padding
#
# **The question.** *How can a model learn from every position at once without seeing the answer?*
#
# Self-attention lets every word see every word. For a model that is to *predict the next word*, that is cheating: the answer stands one place to the right. And in a batch, short sentences are
# filled up with padding that nobody should see at all. Both problems have the same answer: a **mask** on the scores, before the softmax.
#
# **You will be able to**
# - build causal, padding and combined masks, and say what True means;
# - train a language model on all positions of a text in one pass, and sample from it;
# - find a leak, and say why a held-out text may not show it.
#
# **You should know** notebook 03 (self-attention), and `lm_loss` and greedy decoding from notebook 01.
# **Time** about two hours; running every cell takes about three quarters of a minute.

# %%
try:
    from course_utils import answer, check, claim, question_points, setup, use
except ModuleNotFoundError as missing:
    raise ImportError(
        f"This kernel lacks {missing.name}. Start JupyterLab with `python3 course.py lab` (Windows: `py -3 course.py lab`) "
        "from the course folder, or in an editor, choose the Python in the course's .venv as the kernel."
    ) from None

setup("04")

import math

import torch
import torch.nn.functional as F
from IPython.display import display

from course_utils import experiments, measured, plots, widgets
from course_utils.attention import scaled_dot_product_attention
from course_utils.data.text import python_manual
from course_utils.ngrams import NGram
from course_utils.training import seed_everything
from course_utils.transformer import LanguageModel, honest_nats, next_symbol_loss

# %% [markdown]
# ## 1 Who may look at whom
#
# A mask is a table of yes and no with one row for each query and one column for each key. In this course **True = may attend**. (torch uses this convention in `F.scaled_dot_product_attention`, and the *opposite* one in
# `nn.MultiheadAttention`. Read the line about True in every manual.)
#
# Where the answer is no, the score becomes $-\infty$ **before** the softmax, so that the weight is exactly zero and the others still sum to one:
#
# $$
# \begin{aligned}
# a_{ij} &= \frac{m_{ij}\, e^{s_{ij}}}{\sum_{l} m_{il}\, e^{s_{il}}}
# && s \in \mathbb{R}^{T_q \times T_k} \text{ (scores)},\; m_{ij} \in \{0, 1\}
# \end{aligned}
# $$
#
# A **causal** mask lets position $t$ see itself and the past.

# %%
words = ["the", "dog", "bites", "<pad>"]
scores = torch.tensor([[2.0, 1.0, 3.0, 1.0], [1.0, 2.0, 4.0, 1.0], [1.0, 3.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]])
allowed = [[j <= i for j in range(4)] for i in range(4)]  # by hand: the past and the present

by_loop = []
for i in range(4):
    kept = [math.exp(scores[i, j]) if allowed[i][j] else 0.0 for j in range(4)]
    by_loop.append([w / sum(kept) for w in kept])
by_matrix = scores.masked_fill(~torch.tensor(allowed), float("-inf")).softmax(dim=-1)
display(
    plots.table(
        [(word, *row) for word, row in zip(words, by_loop, strict=True)],
        header=("query", *(f"weight on {w}" for w in words)),
        caption="Causal weights: each row sums to one and ends at its own position",
        digits=2,
    )
)
claim("loop and matrix form agree", torch.allclose(torch.tensor(by_loop), by_matrix))


# %% exercise="causal_mask" minutes=5 difficulty=1
def causal_mask(T):
    """(T, T) of bool: row t is True at the columns 0 … t."""
    ### BEGIN SOLUTION
    return torch.ones(T, T, dtype=torch.bool).tril()
    ### END SOLUTION


# %% [markdown] hints="causal_mask"
# 1. Row = who is looking, column = what is looked at. May a word look at itself?
# 2. The True part is a triangle that includes the diagonal. The first row has exactly one True.
# 3. `torch.ones(T, T, dtype=torch.bool)` and one of `tril`, `triu`; or compare two `torch.arange(T)`.


# %% exercise="padding_mask" minutes=5 difficulty=1
def padding_mask(lengths, T):
    """(B, T) of bool from lengths (B): True at the real words of each sentence."""
    ### BEGIN SOLUTION
    return torch.arange(T) < lengths.unsqueeze(1)
    ### END SOLUTION


# %% [markdown] hints="padding_mask"
# 1. A sentence of length 3: which positions are real? Positions start at 0.
# 2. Compare every position with every length. Which of the two must get a new axis so that the result is (B, T)?
# 3. `torch.arange(T) < lengths.unsqueeze(1)`.

# %% [markdown] question="04.1"
# **Predict.** In a batch with padding a decoder wants both: no future, and no padding as a key. How are the two masks combined, and what about the *rows* of padding words?
#
# - a) with "or"; rows of padding are hidden, too
# - b) with "and"; rows of padding are left as they are
# - c) with "and"; rows of padding are hidden, too
#
# ### BEGIN ANSWER
# right: b
# a: With "or" a key is visible if *either* mask allows it: the future would be open wherever there is no padding.
# b: Yes. Both conditions must hold for a key. What a padding word computes is thrown away, so its row does not matter. (With padding at the *end* the causal mask alone
#   already hides it from every real word. With padding in *front*, as when prompts of different length are continued, the second mask is needed, and rows of padding are empty: code must then give finite numbers.)
# c: Hiding whole rows leaves nothing to attend to, and a plain softmax over nothing is NaN. Nobody reads these rows anyway.
# ### END ANSWER


# %% exercise="decoder_mask" minutes=15 difficulty=2
def decoder_mask(tokens, pad_id):
    """(B, 1, T, T) of bool for tokens (B, T): causal, and no padding as a key. The 1 is for the heads."""
    ### BEGIN SOLUTION
    T = tokens.shape[1]
    real = (tokens != pad_id)[:, None, None, :]
    return torch.ones(T, T, dtype=torch.bool).tril() & real
    ### END SOLUTION


# %% [markdown] hints="decoder_mask"
# 1. Keys are columns. On which axis of (B, 1, T, T) does "this word is padding" belong?
# 2. `tokens != pad_id` is (B, T). Give it two new axes in the middle, and let the causal triangle broadcast.
# 3. `torch.ones(T, T, dtype=torch.bool).tril() & (tokens != pad_id)[:, None, None, :]`.

# %% [markdown]
# ## 2 A mask after the softmax is not a mask
#
# It is tempting to compute all weights first and then erase the forbidden ones. Here is a test that needs no theory: **change the word at position $t+1$, and look whether the outputs up to $t$ move.**

# %% [markdown] question="04.2"
# **Predict.** Weights are computed with the full softmax, then multiplied by the causal mask. Do the outputs up to $t$ depend on word $t+1$?
#
# - a) no: the weight on word $t+1$ is zero
# - b) yes: word $t+1$ is in the denominator of the softmax
# - c) only in the last layer
#
# ### BEGIN ANSWER
# right: b
# a: Its own weight is zero. But how large are the *other* weights, and what were they divided by?
# b: Yes. The weights that remain have been divided by a sum in which the future takes part. They no longer sum to one, and what is missing tells how well the future matched.
# c: It happens in every layer in which the mask sits behind the softmax.
# ### END ANSWER

# %%
seed_everything(0)
T, d = 8, 16
mask = use(causal_mask)(T)
x = torch.randn(1, T, d)
changed = x.clone()
changed[0, 5] += 1.0  # word t + 1 = 5
W = [torch.randn(d, d) * d**-0.5 for _ in range(3)]


def mask_before(x):
    return scaled_dot_product_attention(x @ W[0], x @ W[1], x @ W[2], mask)[0]


def mask_after(x):
    weights = ((x @ W[0]) @ (x @ W[1]).transpose(-2, -1) / math.sqrt(d)).softmax(dim=-1) * mask
    return weights @ (x @ W[2])


moved = {
    name: (f(changed) - f(x))[0, :5].abs().max().item()
    for name, f in (("before the softmax", mask_before), ("after it", mask_after))
}
display(
    plots.table(
        [(name, size if size > 1e-6 else 0.0) for name, size in moved.items()],
        header=("mask applied", "largest change of the outputs 0 … 4"),
        caption="Word 5 is changed: do earlier outputs notice?",
        digits=2,
    )
)
claim("mask before the softmax: earlier outputs do not move (1e-6)", moved["before the softmax"] < 1e-6)
claim("mask after the softmax: they do", moved["after it"] > 1e-3)

# %% [markdown]
# (Dividing each row by its new sum would repair it: that *is* the formula of section 1.) In the Transformer's terms: an **encoder** attends without a mask, a **decoder** with a causal one.
#
# Now paint one. Each row is a query, each column a key; click a cell, or drag over several, to hide them (hatched) or to show them again. The sentence ends in padding: make the mask of a decoder, no future and no padding as a key, and press "Check". Beside each row you see how far its output
# moves when one word changes, `<pad>` at first; "Change" chooses another.

# %%
sentence = ["the", "dog", "bites", "a", "man", "<pad>"]
editor = widgets.MaskEditor(
    sentence,
    goal="causal and padding",
    changed=5,
    predict=(
        "The mask is right: no future, and no padding as a key. Only “<pad>” changes. Which outputs can move?",
        ["none", "its own only", "those before it", "all of them"],
    ),
)
editor

# %%
painted = torch.tensor(editor.mask)
wanted = use(decoder_mask)(torch.tensor([[1, 2, 3, 4, 5, 0]]), 0)[0, 0]
print(f"your mask and decoder_mask differ in {int((painted != wanted).sum())} of {wanted.numel()} cells")
q = torch.randn(3, 6, 4)  # queries, keys and values of the six words
bumped = q.clone()
bumped[:, 5] += 1.0  # "<pad>"
with_mask = (scaled_dot_product_attention(*bumped, wanted)[0] - scaled_dot_product_attention(*q, wanted)[0]).abs()
moved_by = with_mask.max(dim=-1).values
display(
    editor.compare(
        "b",
        "As a key it is hidden from everybody. But it still asks with a query of its own, so its own output moves: "
        "whoever uses the outputs must leave that one out. Show one cell of its column, and the output of that row moves, too.",
    )
)
claim("“<pad>” changes: no output of a word moves (1e-6)", moved_by[:5].max() < 1e-6)
claim("its own does", moved_by[5] > 1e-3)

# %% [markdown]
# ## 3 Padding must not change an answer
#
# The same sentence, alone or in a batch beside a longer one, must get the same answer. If a mean is taken over a sentence, padding must be left out of the sum *and* of the count.


# %% exercise="mean_pool" minutes=10 difficulty=1
def mean_pool(x, lengths):
    """The mean of x (B, T, D) over the real positions of each sentence, lengths (B). Returns (B, D)."""
    ### BEGIN SOLUTION
    real = (torch.arange(x.shape[1]) < lengths.unsqueeze(1)).unsqueeze(-1)
    return x.masked_fill(~real, 0.0).sum(dim=1) / lengths.unsqueeze(-1)
    ### END SOLUTION


# %% [markdown] hints="mean_pool"
# 1. Divide what by what? Only real words may appear in either.
# 2. Set padding to zero before you sum over positions. What do you divide by, so that a vector of ones stays a vector of ones?
# 3. `real = torch.arange(x.shape[1]) < lengths.unsqueeze(1)`, then `x.masked_fill(~real.unsqueeze(-1), 0.0).sum(dim=1) / lengths.unsqueeze(-1)`.

# %%
pool, pad = use(mean_pool), use(padding_mask)
seed_everything(0)
sentence, rubbish = torch.randn(1, 3, d), 1e4 * torch.randn(1, 4, d)
padded = torch.cat([sentence, rubbish], dim=1)  # three real words, four of padding
real = pad(torch.tensor([3]), 7)
alone = scaled_dot_product_attention(sentence, sentence, sentence)[0]
beside = scaled_dot_product_attention(padded, padded, padded, real.unsqueeze(1))[0][:, :3]
claim("attention: padding changes nothing (1e-6)", torch.allclose(alone, beside, atol=1e-6))
claim(
    "pooling: padding changes nothing (1e-6)",
    torch.allclose(pool(sentence, torch.tensor([3])), pool(padded, torch.tensor([3])), atol=1e-6),
)
no_mask = scaled_dot_product_attention(padded, padded, padded)[0][:, :3]
claim("without the mask it changes a lot", (alone - no_mask).abs().max() > 1.0)

# %% [markdown]
# The same for a language model and its loss, with `decoder_mask` and the `lm_loss` of notebook 01: a sentence alone, and beside a longer one.

# %%
both, loss = use(decoder_mask), use("lm_loss")
seed_everything(0)
tiny = LanguageModel(vocab=7, d_model=16, n_layers=1, n_heads=2, block_size=8).eval()
short, pad_id = torch.tensor([[1, 2, 3, 4]]), 0
batch = torch.tensor([[1, 2, 3, 4, 0, 0, 0], [5, 6, 1, 2, 3, 4, 5]])


def loss_of_first(tokens, mask):
    """Loss on the first sentence: predict each next word, padding does not count."""
    x = tiny.emb(tokens[:, :-1])
    for block in tiny.blocks:
        x = block(x, mask)
    return loss(tiny.head(tiny.norm(x))[:1], tokens[:1, 1:], pad_id).item()


apart = loss_of_first(short, both(short[:, :-1], pad_id))
together = loss_of_first(batch, both(batch[:, :-1], pad_id))
claim("loss: padding changes nothing (1e-6)", abs(apart - together) < 1e-6)

# %% [markdown]
# ## 4 Every position at once
#
# Now the reward. With a causal mask, a text of $T$ characters contains $T$ questions, "what comes next?", and *one* forward pass answers all of them, each from its own past. An RNN would have to walk through.
#
# Our text is Python's own manual. The model is a small Transformer with two layers (notebook 06 takes it apart), on windows of 32 characters. The baseline counts: an **n-gram** model predicts from the last $n - 1$ characters, by how often each continuation
# occurred in the training text (rare contexts lean on shorter ones). The last column, e to the power of the nats, is called *perplexity*.

# %%
manual = python_manual()
vocab = len(manual.alphabet)
windows = manual.windows(32, 200, seed=1)  # from the last tenth of the text, which nobody trains on
ngrams = {n: NGram(manual.train, vocab, n).nats(windows) for n in (1, 2, 3, 4, 5)}
print(repr(manual.decode(windows[0])))
display(
    plots.table(
        [(f"{n}-gram", nats, math.exp(nats)) for n, nats in ngrams.items()],
        header=("model", "nats a character", "perplexity: like choosing among"),
        caption=f"Counting: {vocab} characters, held-out text (ln {vocab} = {math.log(vocab):.2f} nats would be pure guessing)",
    )
)

# %% [markdown] question="04.3"
# **Predict.** Two models are trained in the same way, one with a causal mask, one without any. Which reaches the lower *training* loss, and which the lower loss on held-out text (measured in the same way, all positions at once)?
#
# - a) training: without mask; held-out: with mask
# - b) without mask, both times
# - c) with mask, both times
#
# ### BEGIN ANSWER
# right: b
# a: That is what one knows of overfitting. But this is not overfitting: the held-out text shows the next character just as readily as the training text.
# b: Yes, and that makes this leak dangerous: a held-out set does not expose it.
# c: Without a mask the model may look at the character that it has to predict. What could be easier?
# ### END ANSWER

# %%
models, table = {}, []
for name, who in (("causal mask", use(causal_mask)), ("no mask", None)):
    seed_everything(0)
    models[name] = LanguageModel(vocab, block_size=32, mask=who)
    history = experiments.train_language_model(models[name], manual, steps=600, label=name)
    with torch.no_grad():
        held_out = next_symbol_loss(models[name], windows).item()
    table.append((name, history.final_loss, held_out, honest_nats(models[name], windows)))
display(
    plots.table(
        table,
        header=("model", "training", "held out, all positions at once", "held out, from the prefix alone"),
        caption="Nats a character",
    )
)
masked, peeking = table
claim("without a mask the training loss falls below 0.3", peeking[1] < 0.3)
claim("so does the loss on held-out text: it does not expose the leak", peeking[2] < 0.3)
claim(
    "asked honestly, the peeking model is at least 0.25 nats worse than the masked one", peeking[3] - masked[3] >= 0.25
)
claim("asked honestly, the peeking model is worse than counting single letters", peeking[3] > ngrams[1])
claim("for the masked model both ways of asking agree", abs(masked[2] - masked[3]) < 1e-3)
claim("the masked model beats the 3-gram on the same windows", masked[3] < ngrams[3])

# %% [markdown]
# **What you see.** Without the mask both losses collapse, on training and on held-out text. The last column asks as generation asks: here is the beginning, what comes next? There the peeking model is worse than
# pure guessing (4.54): it is sure, and wrong. **A loss that is too good is a symptom.**
#
# The masked model beats the 3-gram. **What you might wrongly conclude:** "neural models beat counting." With this size and training it stands between the 3-gram and the 4-gram. Five times the training brings it
# level with the 5-gram, and no further ahead than a few hundredths: see the authors' table.

# %%
full = measured.load("masking")
plots.table(
    [(f"{n}-gram", measured.spread(values)) for n, values in full["ngram"].items()]
    + [(f"causal mask, {steps} steps", measured.spread(values)) for steps, values in full["masked"].items()]
    + [("no mask, 600 steps, from the prefix alone", measured.spread(full["peeking"]))],
    header=("model", "nats a character"),
    caption="The same windows for all (authors; models: three seeds, lowest … highest)",
)

# %% [markdown]
# ## 5 Sampling
#
# A language model writes by drawing: the logits become probabilities, one character is drawn, appended, and the model is asked again. The **temperature** divides the logits before the softmax; **top-k** keeps the $k$ largest only.
#
# $$
# \begin{aligned}
# p_i &= \frac{e^{z_i / \tau}}{\sum_j e^{z_j / \tau}} && z \in \mathbb{R}^{V} \text{ (logits)},\; \tau > 0
# \end{aligned}
# $$


# %% exercise="generate" minutes=20 difficulty=2
def generate(model, idx, n, temperature=1.0, top_k=None):
    """Append n tokens to each row of idx (B, T0), each drawn from the model's distribution.

    model(idx) gives logits (B, T, V) and may be fed at most the last model.block_size tokens. Logits are divided by the temperature (> 0);
    with top_k only the k largest can be drawn. Returns (B, T0 + n).
    """
    ### BEGIN SOLUTION
    for _ in range(n):
        logits = model(idx[:, -model.block_size :])[:, -1] / temperature
        if top_k is not None:
            smallest = logits.topk(top_k, dim=-1).values[:, -1:]
            logits = logits.masked_fill(logits < smallest, float("-inf"))
        token = torch.multinomial(logits.softmax(dim=-1), 1)
        idx = torch.cat([idx, token], dim=1)
    return idx
    ### END SOLUTION


# %% [markdown] hints="generate"
# 1. It is greedy decoding with one line changed. Which one? And where does the temperature act: on logits or on probabilities?
# 2. `torch.multinomial(probabilities, 1)` draws one index for each row. For top-k, everything below the k-th largest logit must get the probability zero: you know how.
# 3. `logits = model(idx[:, -model.block_size:])[:, -1] / temperature`; `kth = logits.topk(top_k).values[:, -1:]`; `masked_fill(logits < kth, -inf)`; softmax; multinomial; cat.

# %%
write = use(generate)
start = manual.encode("The ").unsqueeze(0)
for name, options in (
    ("causal mask, temperature 0.5", {"temperature": 0.5}),
    ("causal mask, temperature 1", {}),
    ("causal mask, temperature 1, top 5", {"top_k": 5}),
    ("no mask, temperature 0.5", {"temperature": 0.5}),
):
    seed_everything(0)
    with torch.no_grad():
        text = write(models[name.split(",")[0]], start, 120, **options)
    print(f"--- {name}\n{manual.decode(text[0])}\n")

# %% [markdown]
# **What you see.** A low temperature repeats what is likely, a high one invents. The model without a mask falls into repetition, "hhhh" and blanks: it has learned to copy from the right, and when it writes there is nothing to the right.

# %% [markdown] question="04.4"
# **Compute.** Two characters have the logits 1 and 0. With temperature 0.5, how many times as likely is the first as the second? (Two decimals.)
#
# ### BEGIN ANSWER
# right: 7.39
# tolerance: 0.02
# explain: Dividing by 0.5 doubles the difference of the logits, so the ratio is e to the power of 2, about 7.39. At temperature 1 it is e, about 2.72.
# ### END ANSWER

# %% [markdown] question="04.5"
# **Decide.** Your language model reports a validation loss of 0.05 nats a character after ten minutes, far below everything published. What do you check first?
#
# - a) whether the validation text also occurs in the training text
# - b) whether changing a later character changes earlier outputs
# - c) whether the learning rate is too low
#
# ### BEGIN ANSWER
# right: b
# a: A good second check; but even a text seen in training is rarely known to 0.05 nats so soon, and the perturbation test takes one line.
# b: Yes. It finds a missing mask and a mask behind the softmax in one go. If it passes, compare inputs and targets next: a target that is not shifted leaks the answer *through* a correct mask.
# c: A low learning rate makes losses high.
# ### END ANSWER

# %% [markdown] written="04.W"
# **Explain in your own words** (about five sentences): why can a Transformer train on all positions of a text at once, what would go wrong without a mask, and why does a held-out text not show it?
#
# ### BEGIN GUIDE
# Full marks for these four points:
# 1. With a causal mask every position sees only its own past, so one forward pass gives T honest predictions (1 point).
# 2. Without it the input contains the answer; the model learns to copy it from the right (1 point), and generation fails, because then there is nothing to the right (1 point).
# 3. The held-out text is presented in the same way, answer included, so its loss is low as well; only predicting from the prefix alone, or a perturbation test, exposes the leak (1 point).
# 4. The mask must act before the softmax; afterwards the future is still in the denominator (1 point).
# ### END GUIDE

# %% [markdown]
# ## Recap
#
# - A **mask** is a table of yes and no; in this course **True = may attend**. It turns scores into $-\infty$ **before** the softmax.
# - **Causal mask** (masked self-attention): no position sees the future, so all $T$ predictions of a text cost one forward pass.
# - **Padding mask**: padding is no key, no part of a mean, no part of a loss.
# - A leak shows as a loss that is too good, on held-out text as well. The test is to **perturb the future** and watch the past; then to lay inputs and targets side by side.
# - **Sampling**: temperature divides logits; top-k cuts the tail.
#
# **Sources.** Vaswani et al. 2017, *Attention is all you need*, section 3.2.3 · Radford et al. 2018, *Improving language understanding by generative pre-training* · Witten and Bell 1991, *The zero-frequency problem* (smoothing) · Fan, Lewis and Dauphin 2018,
# *Hierarchical neural story generation* (top-k). Text: the manual that ships with Python (PSF licence).

# %% [markdown]
# ### Your questions so far

# %% questions="04"
