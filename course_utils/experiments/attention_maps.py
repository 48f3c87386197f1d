"""Looking inside trained blocks: their weights in torch's own layer, and the attention maps of a translator."""

import copy
import inspect

import torch
from torch import Tensor, nn

from ..data.batches import make_batch
from ..data.dates import Corpus, Pair
from ..encoder_decoder import TransformerTranslator
from ..multihead import MultiHeadAttention

Map = tuple[str, Tensor, list[str], list[str]]
PARTS = (("ln1", "norm1"), ("ln2", "norm2"), ("ff1", "linear1"), ("ff2", "linear2"))


@torch.no_grad()
def adopt(module: nn.Module, reference: nn.Module) -> bool:
    """Copy the numbers of a reference into a module of a reader's own; False if there is no way to.

    A module (or a part of it) with a method copy_from(reference) does it itself; otherwise names and shapes must agree.
    """
    if hasattr(module, "copy_from"):
        module.copy_from(reference)
        return True
    own, theirs = (dict(m.named_parameters(recurse=False)) for m in (module, reference))
    if own.keys() != theirs.keys() or any(own[name].shape != theirs[name].shape for name in own):
        return False
    for name, parameter in own.items():
        parameter.copy_(theirs[name])
    parts = [dict(m.named_children()) for m in (module, reference)]
    return parts[0].keys() == parts[1].keys() and all(adopt(parts[0][name], parts[1][name]) for name in parts[0])


@torch.no_grad()
def torch_encoder_layer(block: nn.Module, n_heads: int, *, norm_first: bool) -> nn.TransformerEncoderLayer | None:
    """torch's own encoder layer with the weights of a block, pre-norm or post-norm.

    None for a block that keeps its weights under other names than the course's.
    """
    try:
        d_ff, d_model = block.ff1.weight.shape
        theirs = nn.TransformerEncoderLayer(
            d_model, n_heads, d_ff, dropout=0.0, batch_first=True, norm_first=norm_first
        ).eval()
        projections = (block.attn.W_q, block.attn.W_k, block.attn.W_v)
        theirs.self_attn.in_proj_weight.copy_(torch.cat([p.weight for p in projections]))
        theirs.self_attn.in_proj_bias.copy_(torch.cat([p.bias for p in projections]))
        theirs.self_attn.out_proj.load_state_dict(block.attn.W_o.state_dict())
        for mine, other in PARTS:
            getattr(theirs, other).load_state_dict(getattr(block, mine).state_dict())
    except (AttributeError, RuntimeError, ValueError, TypeError):
        return None
    return theirs


def _is_attention(part: nn.Module) -> bool:
    """Whether a module has the parts and the signature of the exercise: forward(x_q, x_kv, mask)."""
    linear = all(isinstance(getattr(part, w, None), nn.Linear) for w in ("W_q", "W_k", "W_v", "W_o"))
    arguments = list(inspect.signature(part.forward).parameters)
    return linear and arguments[2:3] == ["mask"]


def showing_weights(model: nn.Module, n_heads: int) -> nn.Module:
    """A copy of a model whose attentions are the course's own, which keep their weights, with the model's numbers.

    An attention that stores its numbers under other names than W_q, W_k, W_v and W_o, or is called in another way, is
    left as it is.
    """
    model = copy.deepcopy(model)
    for parent in list(model.modules()):
        for name, part in parent.named_children():
            if not _is_attention(part):
                continue
            showing = MultiHeadAttention(part.W_q.in_features, n_heads)
            try:
                showing.load_state_dict({k: v for k, v in part.state_dict().items() if k in showing.state_dict()})
            except RuntimeError:
                continue
            setattr(parent, name, showing)
    return model.eval()


@torch.no_grad()
def translator_maps(model: TransformerTranslator, corpus: Corpus, pair: Pair, n_heads: int) -> list[Map]:
    """Weights (queries, keys), averaged over heads, of a translator's last layers for one sentence pair.

    Each as (where, weights, query words, key words): the encoder's and the decoder's self-attention, if their numbers
    can be read (see `showing_weights`), and the cross-attention. A row of the decoder is labelled by the word that
    it writes; the keys of its self-attention are the words that it has read, which begin with <bos>.
    """
    model = showing_weights(model, n_heads)
    batch = make_batch([pair], corpus)
    model(batch)
    source, target = [*pair.source, "<eos>"], [*pair.target, "<eos>"]
    read = ["<bos>", *pair.target]
    own = [m for m in model.encoder.modules() if isinstance(m, MultiHeadAttention)]
    last = model.decoder.layers[-1]
    found = [("encoder self-attention", own[-1] if own else None, source, source)]
    found += [("decoder self-attention", last.attn, target, read), ("cross-attention", last.cross, target, source)]
    return [
        (where, layer.weights[0].mean(dim=0), queries, keys)
        for where, layer, queries, keys in found
        if isinstance(layer, MultiHeadAttention)
    ]
