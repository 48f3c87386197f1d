"""Right answers to build_encoder, TiedLM and train_step."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from right_answers import right

# --- build_encoder


@right("build_encoder")
def _(make_layer, n_layers):
    """A Sequential."""
    return nn.Sequential(*[make_layer() for _ in range(n_layers)])


@right("build_encoder")
def _(make_layer, n_layers):
    """A ModuleList and a loop."""

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([make_layer() for _ in range(n_layers)])

        def forward(self, x, mask=None):
            for layer in self.layers:
                x = layer(x) if mask is None else layer(x, mask)
            return x

    return Encoder()


@right("build_encoder")
def _(make_layer, n_layers):
    """Layers registered one by one, under names."""

    class Encoder(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.n = n
            for i in range(n):
                self.add_module(f"layer{i}", make_layer())

        def forward(self, x, *args, **kwargs):
            for i in range(self.n):
                x = getattr(self, f"layer{i}")(x, *args, **kwargs)
            return x

    return Encoder(n_layers)


@right("build_encoder")
def _(make_layer, n_layers):
    """A list that runs its own modules."""

    class Stack(nn.ModuleList):
        def forward(self, x, **kwargs):
            for module in self:
                x = module(x, **kwargs)
            return x

    stack = Stack()
    while len(stack) < n_layers:
        stack.append(make_layer())
    return stack


@right("build_encoder")
def _(make_layer, n_layers):
    """One layer, and the encoder of the others after it."""

    class Encoder(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.first = make_layer()
            self.rest = Encoder(n - 1) if n > 1 else nn.Identity()

        def forward(self, x):
            return self.rest(self.first(x))

    return Encoder(n_layers)


# --- TiedLM


@right("TiedLM")
class HeadFromEmbedding(nn.Module):
    """The head takes the embedding's weight; no clone, no transpose."""

    def __init__(self, vocab, d_model):
        super().__init__()
        self.emb = nn.Embedding(vocab, d_model)
        self.head = nn.Linear(d_model, vocab, bias=False)
        self.head.weight = self.emb.weight

    def forward(self, idx):
        return self.head(self.emb(idx))


@right("TiedLM")
class EmbeddingFromHead(nn.Module):
    """The other way round."""

    def __init__(self, vocab, d_model):
        super().__init__()
        self.head = nn.Linear(d_model, vocab, bias=False)
        self.emb = nn.Embedding(vocab, d_model)
        self.emb.weight = self.head.weight

    def forward(self, idx):
        x = self.emb(idx)
        return self.head(x)


@right("TiedLM")
class OneParameter(nn.Module):
    """One parameter made beforehand and given to both, einsum in place of the call."""

    def __init__(self, vocab, d_model):
        super().__init__()
        shared = nn.Parameter(torch.randn(vocab, d_model) * d_model**-0.5)
        self.emb, self.head = nn.Embedding(vocab, d_model), nn.Linear(d_model, vocab, bias=False)
        self.emb.weight = self.head.weight = shared

    def forward(self, idx):
        return torch.einsum("btd,vd->btv", F.embedding(idx, self.emb.weight), self.head.weight)


@right("TiedLM")
class OneHotTied(nn.Module):
    """One-hot words times the matrix, then times its transpose."""

    def __init__(self, vocab, d_model):
        super().__init__()
        self.head = nn.Linear(d_model, vocab, bias=None)
        self.emb = nn.Embedding(vocab, d_model, _weight=self.head.weight)
        self.emb.weight = self.head.weight

    def forward(self, idx):
        W = self.emb.weight
        return F.one_hot(idx, W.shape[0]).to(W.dtype) @ W @ W.T


@right("TiedLM")
class OwnMatrix(nn.Module):
    """A parameter under a name of its own, with copy_from."""

    def __init__(self, vocab, d_model):
        super().__init__()
        self.W = nn.Parameter(torch.empty(d_model, vocab).normal_())

    def copy_from(self, reference):
        self.W.data.copy_(reference.emb.weight.T)

    def forward(self, idx):
        return self.W.T[idx] @ self.W


@right("TiedLM")
class OtherNamesTied(nn.Module):
    """Other names: only properties can be checked."""

    def __init__(self, vocab, d_model):
        super().__init__()
        self.wte = nn.Embedding(vocab, d_model)
        self.lm_head = nn.Linear(d_model, vocab, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, idx):
        return self.lm_head(self.wte(idx))


# --- train_step


@right("train_step")
def _(model, optimizer, x, y, max_norm=None):
    """The usual order."""
    model.train()
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    if max_norm is not None:
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss.item()


@right("train_step")
def _(model, optimizer, x, y, max_norm=None):
    """Gradients cleared to zeros just before backward, log-probabilities, the loss as float(loss)."""
    model.train(True)
    log_p = model(x).log_softmax(dim=-1)
    loss = -log_p[torch.arange(len(y)), y].mean()
    optimizer.zero_grad(set_to_none=False)
    loss.backward()
    if max_norm:
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=max_norm)
    optimizer.step()
    return float(loss)


@right("train_step")
def _(model, optimizer, x, y, max_norm=None):
    """model.zero_grad, the loss as a module, clipping written out."""
    model.train()
    model.zero_grad()
    loss = nn.CrossEntropyLoss()(model(x), y)
    loss.backward()
    if max_norm is not None:
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        norm = math.sqrt(sum((g**2).sum().item() for g in gradients))
        if norm > max_norm:
            for g in gradients:
                g.mul_(max_norm / norm)
    optimizer.step()
    return loss.detach().item()


@right("train_step")
def _(model, optimizer, x, y, max_norm=None):
    """Gradients asked for and set; nothing old is left to clear."""
    model.train()
    loss = F.nll_loss(F.log_softmax(model(x), -1), y)
    parameters = [p for p in model.parameters() if p.requires_grad]
    gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
    for p, g in zip(parameters, gradients, strict=True):
        p.grad = None if g is None else g.clone()
    if max_norm is not None:
        norm = torch.cat([g.flatten() for g in gradients if g is not None]).norm()
        for p in parameters:
            if p.grad is not None:
                p.grad.mul_(torch.clamp(max_norm / (norm + 1e-6), max=1.0))
    optimizer.step()
    return loss.data.numpy().item()


@right("train_step")
def _(model, optimizer, x, y, max_norm=None):
    """A closure that the optimiser calls."""

    def closure():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        return loss

    model.train()
    return optimizer.step(closure).item()


@right("train_step")
def _(model, optimizer, x, y, max_norm=None):
    """The optimiser's own parameters, classes as one-hot rows, the gradients cleared before and after."""
    optimizer.zero_grad()
    model.train()
    logits = model(x)
    loss = F.cross_entropy(logits, F.one_hot(y, logits.shape[-1]).to(logits.dtype))
    value = loss.item()
    loss.backward()
    if max_norm is not None:
        nn.utils.clip_grad_norm_([p for group in optimizer.param_groups for p in group["params"]], max_norm)
    optimizer.step()
    optimizer.zero_grad()
    return value


@right("train_step")
def _(model, optimizer, x, y, max_norm=None):
    """No limit is an infinite limit; example by example."""
    model.train()
    for p in model.parameters():
        p.grad = None
    logits = model(x)
    losses = [torch.logsumexp(row, 0) - row[label] for row, label in zip(logits, y.tolist(), strict=True)]
    loss = sum(losses) / len(losses)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), float("inf") if max_norm is None else max_norm)
    optimizer.step()
    return loss.tolist()


@right("train_step")
def _(model, optimizer, x, y, max_norm=None):
    """Cleared after the step, for the next one."""
    model.train()
    loss = F.cross_entropy(input=model(x), target=y)
    loss.backward()
    if max_norm is not None:
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.item()
