"""Properties of the blocks of a Transformer and of its smallest language model; torch's own layers are the judge."""

import torch
from torch import Tensor, nn

from course_utils.multihead import FusedMultiHeadAttention, KeyValueCache, MultiHeadAttention
from course_utils.transformer import TransformerBlock as PlainBlock
from properties import Case, close, gradients, raises, states
from properties.multihead import torch_twin

NORMS = {"ln1": "norm1", "ln2": "norm2", "ln3": "norm3"}
LINEAR = {"ff1": "linear1", "ff2": "linear2"}


def randomise(module: nn.Module, seed: int) -> nn.Module:
    """In float64 and in evaluation mode, with weights that depend on the seed alone, those of norms too."""
    r = Case(seed=seed + 50).random()
    module = module.double().eval()
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(0.4 * r(*p.shape))
    return module


def layer_twin(block: nn.Module, kind: type[nn.Module], norm_first: bool) -> nn.Module:
    """A layer of torch with the weights of ours."""
    d_model, d_ff = block.ff1.in_features, block.ff1.out_features
    twin = kind(d_model, block.attn.n_heads, d_ff, dropout=0.0, batch_first=True, norm_first=norm_first)
    twin = twin.to(block.ff1.weight).eval()
    twin.self_attn = torch_twin(block.attn)
    if hasattr(block, "cross"):
        twin.multihead_attn = torch_twin(block.cross)
    for mine, theirs in (NORMS | LINEAR).items():
        if hasattr(block, mine):
            getattr(twin, theirs).load_state_dict(getattr(block, mine).state_dict())
    return twin


def causal(T: int) -> Tensor:
    return torch.ones(T, T, dtype=torch.bool).tril()


def _inputs(case: Case, d_model: int, T: int | None = None) -> Tensor:
    return (3 * case.random()(case.B, T or case.T, d_model)).requires_grad_()


def _agrees(out: Tensor, expected: Tensor, inputs: list[Tensor]) -> None:
    close(out, expected)
    direction = torch.linspace(-1.0, 2.0, out.numel(), dtype=out.dtype).view(out.shape)
    for one, two in zip(gradients(out, inputs, direction), gradients(expected, inputs, direction), strict=True):
        close(one, two)


def _encoder_block_is_torchs(kind: type[nn.Module], case: Case, norm_first: bool) -> None:
    d_model = 2 * case.D * case.H
    for options in ({}, {"attention": MultiHeadAttention}):
        block = randomise(kind(d_model, case.H, d_model + 1, **options), case.seed)
        twin, x = layer_twin(block, nn.TransformerEncoderLayer, norm_first), _inputs(case, d_model)
        own = case.mask(case.B, case.T, case.T)
        for ours, theirs in (
            (None, None),
            (causal(case.T), ~causal(case.T)),
            (own, ~own.repeat_interleave(case.H, dim=0)),
        ):
            _agrees(block(x, ours), twin(x, src_mask=theirs), [x])


@states("TransformerBlock")
def a_block_is_the_pre_norm_layer_of_torch(TransformerBlock, case: Case):
    _encoder_block_is_torchs(TransformerBlock, case, norm_first=True)


@states("PostNormBlock")
def a_post_norm_block_is_the_layer_of_torch_as_published(PostNormBlock, case: Case):
    _encoder_block_is_torchs(PostNormBlock, case, norm_first=False)


def _drops_in_training_alone(kind: type[nn.Module], case: Case, *more: Tensor) -> tuple[nn.Module, Tensor]:
    """A block that drops everything, and its input; in evaluation it equals one that drops nothing."""
    d_model = 2 * case.H
    dropping, without = (randomise(kind(d_model, case.H, 5, *p), case.seed) for p in ((1.0,), ()))
    x = _inputs(case, d_model)
    close(dropping(x, *more), without(x, *more))
    close(without.train()(x, *more), without.eval()(x, *more))
    return dropping.train(), x


@states("TransformerBlock")
def dropout_acts_on_what_is_added_to_the_stream(TransformerBlock, case: Case):
    block, x = _drops_in_training_alone(TransformerBlock, case)
    assert torch.equal(block(x), x)


@states("PostNormBlock")
def dropout_acts_on_what_is_added_before_each_norm(PostNormBlock, case: Case):
    block, x = _drops_in_training_alone(PostNormBlock, case)
    close(block(x), block.ln2(block.ln1(x)))


@states("TransformerBlock")
def the_block_reads_on_where_its_cache_ends(TransformerBlock, case: Case):
    d_model = 2 * case.H
    block, cache = randomise(TransformerBlock(d_model, case.H, 5), case.seed), KeyValueCache()
    x, mask = _inputs(case, d_model), causal(case.T)
    whole = block(x, mask)
    for t in range(case.T):
        close(block(x[:, t : t + 1], mask[t : t + 1, : t + 1], cache), whole[:, t : t + 1])
        assert len(cache) == t + 1


@states("TransformerBlock")
def an_attention_of_ones_own_is_made_with_both_sizes_and_need_not_know_caches(TransformerBlock, case: Case):
    class Own(nn.Module):
        def __init__(self, d_model, n_heads):
            super().__init__()
            self.sizes = (d_model, n_heads)

        def forward(self, x_q, x_kv=None, mask=None):
            return torch.zeros_like(x_q)

    block = TransformerBlock(3 * case.H, case.H, 7, attention=Own)
    assert block.attn.sizes == (3 * case.H, case.H)
    assert block(torch.zeros(1, case.T, 3 * case.H)).shape == (1, case.T, 3 * case.H)
    assert isinstance(TransformerBlock(3 * case.H, case.H, 7).attn, FusedMultiHeadAttention)


@states("DecoderBlock")
def a_decoder_block_is_the_pre_norm_layer_of_torch(DecoderBlock, case: Case):
    d_model = 2 * case.D * case.H
    both = {"attention": FusedMultiHeadAttention, "cross_attention": MultiHeadAttention}
    for options in ({}, {"attention": FusedMultiHeadAttention}, both):
        block = randomise(DecoderBlock(d_model, case.H, d_model + 1, **options), case.seed)
        twin = layer_twin(block, nn.TransformerDecoderLayer, norm_first=True)
        x, memory = _inputs(case, d_model), _inputs(Case(case.B, case.T, seed=case.seed + 9), d_model, case.T + 2)
        seen = case.mask(case.B, case.T + 2)
        _agrees(block(x, memory), twin(x, memory), [x, memory])
        out = block(x, memory, causal(case.T), seen[:, None, None])
        expected = twin(x, memory, tgt_mask=~causal(case.T), memory_key_padding_mask=~seen)
        _agrees(out, expected, [x, memory])


@states("DecoderBlock")
def a_decoder_block_is_made_of_the_attentions_it_is_given(DecoderBlock, case: Case):
    for given, types in (
        ({}, (MultiHeadAttention, MultiHeadAttention)),
        ({"attention": FusedMultiHeadAttention}, (FusedMultiHeadAttention, FusedMultiHeadAttention)),
        ({"cross_attention": FusedMultiHeadAttention}, (MultiHeadAttention, FusedMultiHeadAttention)),
    ):
        block = DecoderBlock(2 * case.H, case.H, 5, **given)
        assert (type(block.attn), type(block.cross)) == types
        assert (block.attn.n_heads, block.cross.n_heads) == (case.H, case.H)


@states("DecoderBlock")
def dropout_acts_on_all_three_sub_layers(DecoderBlock, case: Case):
    memory = case.random()(case.B, case.T + 1, 2 * case.H)
    block, x = _drops_in_training_alone(DecoderBlock, case, memory)
    assert torch.equal(block(x, memory), x)


class Shifted(nn.Module):
    """A layer for tests: doubles x and adds its own number, and another one that comes with the call."""

    def __init__(self, number: float):
        super().__init__()
        self.number = nn.Parameter(torch.tensor(number, dtype=torch.float64))

    def forward(self, x, more=0.0, *, still_more=0.0):
        return 2 * x + self.number + more + still_more


@states("WithMask")
def a_block_gets_the_mask_of_the_present_call(WithMask, case: Case):
    block = randomise(PlainBlock(2 * case.H, case.H, 5), case.seed)
    wrapped, x = WithMask(block), _inputs(case, 2 * case.H)
    assert torch.equal(wrapped(x), block(x))
    for mask in (causal(case.T), case.mask(case.B, case.T, case.T), None):
        wrapped.mask = mask
        assert torch.equal(wrapped(x), block(x, mask))
    assert len(list(wrapped.parameters())) == len(list(block.parameters()))


@states("WithMask")
def a_mask_that_is_handed_on_counts_more_than_the_one_that_was_set(WithMask, case: Case):
    block, T = randomise(PlainBlock(2 * case.H, case.H, 5), case.seed), max(2, case.T)
    wrapped, x = WithMask(block), _inputs(case, 2 * case.H, T)
    for mask in (None, causal(T).T):  # causal backwards: whoever takes the wrong one sees other positions
        wrapped.mask = mask
        assert torch.equal(wrapped(x, causal(T)), block(x, causal(T)))


@states("Stack")
def a_stack_runs_its_layers_in_order_with_the_same_arguments(Stack, case: Case):
    x, numbers = case.random()(case.B, case.T, case.D), [float(n) for n in range(1, case.H + 1)]
    stack = Stack([Shifted(number) for number in numbers])
    for args, kwargs, total in (((), {}, 0.0), ((0.5,), {}, 0.5), ((0.5,), {"still_more": 4.0}, 4.5)):
        expected = x
        for number in numbers:
            expected = 2 * expected + number + total
        close(stack(x, *args, **kwargs), expected)
    assert [p.item() for p in stack.parameters()] == numbers


@states("build_encoder")
def every_layer_of_an_encoder_is_made_anew(build_encoder, case: Case):
    made = []

    def make_layer():
        made.append(Shifted(float(len(made) + 1)))
        return made[-1]

    for n in range(1, case.H + 1):
        made.clear()
        encoder = build_encoder(make_layer, n)
        assert len(made) == n and [p.item() for p in encoder.parameters()] == [float(i) for i in range(1, n + 1)]
        x = expected = case.random()(case.B, case.T, case.D)
        for number in range(1, n + 1):
            expected = 2 * expected + number + 0.5
        close(encoder(x, 0.5), expected)


@states("build_encoder")
def an_encoder_of_nothing_is_an_error(build_encoder, case: Case):
    for n in (0, -1):
        raises(lambda: build_encoder(lambda: Shifted(1.0), n), f"n_layers: got {n}, must be at least 1")  # noqa: B023


@states("TiedLM")
def one_matrix_looks_up_and_scores(TiedLM, case: Case):
    V = case.H + 6
    model = TiedLM(V, case.D).double()
    idx = case.integers(V - 1, case.B, case.T)  # the last symbol is never read
    W = model.emb.weight
    assert (model.head.in_features, model.head.out_features) == (case.D, V)
    assert model.head.weight is W and [tuple(p.shape) for p in model.parameters()] == [(V, case.D)]
    out, expected = model(idx), torch.stack([torch.stack([W @ W[i] for i in row]) for row in idx])
    _agrees(out, expected, [W])
    assert gradients(model(idx), [W], torch.ones_like(out))[0][-1].any(), "scored, though never read"
