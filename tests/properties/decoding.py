"""Properties of shift_right, greedy_decode and generate."""

import torch
from torch import Tensor, nn

from properties import Case, raises, states

V = 5
N = 6


@states("shift_right")
def shift_right_puts_each_target_one_step_later(shift_right, case: Case):
    targets = case.integers(V, case.B, case.T)
    fed = shift_right(targets, V)
    assert fed.shape == targets.shape and fed.dtype == targets.dtype
    for row, target in zip(fed.tolist(), targets.tolist(), strict=True):
        assert row == [V, *target][:-1]


@states("shift_right")
def shift_right_leaves_its_argument_alone(shift_right, case: Case):
    targets = case.integers(V, case.B, case.T)
    before = targets.clone()
    shift_right(targets, V).fill_(-1)
    assert torch.equal(targets, before)


class Chain(nn.Module):
    """A model whose choice depends on every token it is fed, and on their order; it keeps what it was fed.

    With dropout on, it says something else, so that decoding in training mode shows.
    """

    def __init__(self, case: Case, block_size: int | None = None):
        super().__init__()
        self.table = torch.randn(97, V, generator=torch.Generator().manual_seed(case.seed))
        self.fed: list[Tensor] = []
        self.modes: list[bool] = []
        if block_size is not None:
            self.block_size = block_size

    def forward(self, idx: Tensor) -> Tensor:
        self.fed.append(idx)
        self.modes.append(self.training)
        state, logits = torch.full((idx.shape[0],), 3 + 7 * self.training), []
        for t in range(idx.shape[1]):
            state = (31 * state + 7 * idx[:, t] + 1) % 97
            logits.append(self.table[state])
        return torch.stack(logits, dim=1)


def _expected(model: Chain, row: list[int], n: int, eos_id: int | None = None) -> list[int]:
    """One row, one token at a time, in plain Python; after EOS nothing but EOS."""
    row, block_size, ended = list(row), getattr(model, "block_size", 10**6), False
    for _ in range(n):
        token = int(model(torch.tensor([row[-block_size:]]))[0, -1].argmax())
        row.append(eos_id if ended else token)
        ended = ended or token == eos_id
    return row


def _prompt(case: Case) -> Tensor:
    return case.integers(V, case.B, case.T)


@states("greedy_decode")
def greedy_decode_appends_the_most_likely_token(greedy_decode, case: Case):
    model, prompt = Chain(case).eval(), _prompt(case)
    before = prompt.clone()
    decoded = greedy_decode(model, prompt, N)
    assert decoded.dtype == prompt.dtype and torch.equal(prompt, before)
    assert decoded.tolist() == [_expected(model, row, N) for row in prompt.tolist()]
    assert torch.equal(greedy_decode(model, prompt, 0), prompt)


@states("greedy_decode")
def greedy_decode_takes_any_function(greedy_decode, case: Case):
    model, prompt = Chain(case).eval(), _prompt(case)
    function = model.forward  # neither a mode nor a block size
    assert torch.equal(greedy_decode(function, prompt, N), greedy_decode(model, prompt, N))


@states("greedy_decode")
def greedy_decode_feeds_the_last_block(greedy_decode, case: Case):
    for block_size in (1, case.T, case.T + 2):
        model, prompt = Chain(case, block_size).eval(), _prompt(case)
        decoded = greedy_decode(model, prompt, N)
        for i, fed in enumerate(model.fed):
            assert torch.equal(fed, decoded[:, : case.T + i][:, -block_size:])
        assert decoded.tolist() == [_expected(model, row, N) for row in prompt.tolist()]


@states("greedy_decode")
def greedy_decode_goes_on_with_eos(greedy_decode, case: Case):
    prompt = _prompt(case)
    for eos_id in range(V):
        model = Chain(case).eval()
        rows = [_expected(model, row, N, eos_id) for row in prompt.tolist()]
        # All rows stop when the last of them has said EOS for the first time.
        ends = [row[case.T :].index(eos_id) + 1 if eos_id in row[case.T :] else N for row in rows]
        model.fed.clear()
        decoded = greedy_decode(model, prompt, N, eos_id)
        assert decoded.tolist() == [row[: case.T + max(ends)] for row in rows]
        assert len(model.fed) == max(ends)


@states("greedy_decode")
def greedy_decode_does_not_take_eos_in_the_prompt_for_an_end(greedy_decode, case: Case):
    model = Chain(case).eval()
    prompt = torch.zeros(case.B, 2, dtype=torch.long)
    assert greedy_decode(model, prompt, 1, eos_id=0).shape == (case.B, 3)
    assert greedy_decode(model, prompt, 1, eos_id=0).tolist() == [_expected(model, [0, 0], 1)] * case.B


@states("greedy_decode")
def greedy_decode_treats_rows_alone(greedy_decode, case: Case):
    model, prompt = Chain(case).eval(), _prompt(case)
    order = torch.randperm(case.B, generator=torch.Generator().manual_seed(case.seed))
    assert torch.equal(greedy_decode(model, prompt[order], N), greedy_decode(model, prompt, N)[order])


@states("greedy_decode")
def greedy_decode_restores_the_mode_of_the_model(greedy_decode, case: Case):
    prompt = _prompt(case)
    for training in (True, False):
        model = Chain(case).train(training)
        greedy_decode(model, prompt, 2)
        assert model.training is training
        assert model.modes == [False, False]


@states("greedy_decode")
def greedy_decode_restores_the_mode_when_the_model_fails(greedy_decode, case: Case):
    class Broken(Chain):
        def forward(self, idx):
            raise RuntimeError("broken")

    model = Broken(case).train()
    try:
        greedy_decode(model, _prompt(case), 1)
    except RuntimeError as error:
        assert str(error) == "broken"
    else:
        raise AssertionError("the fault of the model was swallowed")
    assert model.training


@states("greedy_decode")
def greedy_decode_records_no_gradient(greedy_decode, case: Case):
    recorded = []

    def model(idx):
        logits = torch.zeros(*idx.shape, V, requires_grad=True) * 1
        recorded.append(logits.requires_grad)
        return logits

    greedy_decode(model, _prompt(case), 1)
    assert recorded == [False]


class Ranked(Chain):
    """A Chain whose logits are 0 … V - 1 in some order: no near ties, and at a low temperature a certain winner."""

    def __init__(self, case: Case, block_size: int | None = None):
        super().__init__(case, block_size)
        self.table = self.table.argsort(dim=-1).argsort(dim=-1).float()


def _generator(case: Case) -> torch.Generator:
    return torch.Generator().manual_seed(case.seed)


@states("generate")
def generate_keeps_the_prompt_and_appends_n_tokens(generate, case: Case):
    prompt = _prompt(case)
    before = prompt.clone()
    for n in (0, 1, N):
        drawn = generate(Chain(case), prompt, n, generator=_generator(case))
        assert drawn.shape == (case.B, case.T + n) and drawn.dtype == prompt.dtype
        assert torch.equal(drawn[:, : case.T], before) and torch.equal(prompt, before)
        assert ((drawn >= 0) & (drawn < V)).all()


@states("generate")
def generate_draws_each_token_with_its_probability(generate, case: Case):
    """20 000 draws: the share of a token is within five standard deviations (0.018) of its probability."""
    model, row = Ranked(case), case.integers(V, 1, case.T)
    logits = model(row)[0, -1]
    for temperature, top_k in ((1.0, None), (2.0, None), (0.5, None), (1.0, 3), (3.0, 2), (1.0, V), (2.0, V + 7)):
        largest = logits.sort(descending=True).values[: top_k or V]
        odds = torch.where(logits >= largest[-1], (logits.double() / temperature).exp(), 0.0)
        drawn = generate(model, row.expand(20_000, -1), 1, temperature, top_k, _generator(case))[:, -1]
        counts = torch.bincount(drawn, minlength=V)
        assert not counts[odds == 0].any(), "a token beyond the top k was drawn"
        assert (counts / 20_000 - odds / odds.sum()).abs().max() < 0.018


@states("generate")
def generate_without_choice_is_greedy(generate, case: Case):
    for block_size in (None, 1, case.T, case.T + 2):
        model, prompt = Ranked(case, block_size), _prompt(case)
        expected = [_expected(model.eval(), row, N) for row in prompt.tolist()]
        assert generate(model, prompt, N, temperature=0.01, generator=_generator(case)).tolist() == expected
        assert generate(model, prompt, N, temperature=5.0, top_k=1, generator=_generator(case)).tolist() == expected


@states("generate")
def generate_feeds_the_last_block(generate, case: Case):
    for block_size in (1, case.T, case.T + 2):
        model = Chain(case, block_size)
        drawn = generate(model, _prompt(case), N, generator=_generator(case))
        assert len(model.fed) == N
        for i, fed in enumerate(model.fed):
            assert torch.equal(fed, drawn[:, : case.T + i][:, -block_size:])


@states("generate")
def generate_repeats_itself_with_the_same_generator(generate, case: Case):
    prompt = case.integers(V, 50, case.T)
    state = torch.get_rng_state()
    once, again = (generate(Chain(case), prompt, N, generator=_generator(case)) for _ in range(2))
    assert torch.equal(once, again)
    assert torch.equal(torch.get_rng_state(), state), "the global generator was used"
    other = torch.Generator().manual_seed(case.seed + 1)
    assert not torch.equal(generate(Chain(case), prompt, N, generator=other), once)
    torch.manual_seed(case.seed)
    assert torch.equal(generate(Chain(case), prompt, N), once), "without one, it is the global generator"


@states("generate")
def generate_with_the_same_draws_is_bolder_at_a_low_temperature(generate, case: Case):
    model, prompt = Ranked(case), case.integers(V, 200, case.T)
    gained = []
    for temperature in (0.3, 1.0, 3.0):
        drawn = generate(model, prompt, 1, temperature, generator=_generator(case))[:, -1:]
        gained.append(model(prompt)[:, -1].gather(1, drawn).mean().item())
    assert gained == sorted(gained, reverse=True)


@states("generate")
def generate_records_no_gradient(generate, case: Case):
    recorded = []

    def model(idx):
        logits = torch.zeros(*idx.shape, V, requires_grad=True) * 1
        recorded.append(logits.requires_grad)
        return logits

    generate(model, _prompt(case), 1, generator=_generator(case))
    assert recorded == [False]


@states("generate")
def generate_names_what_it_cannot_draw_from(generate, case: Case):
    for temperature in (0.0, -1.0, -0.5):
        raises(
            lambda: generate(Chain(case), _prompt(case), 1, temperature=temperature),  # noqa: B023
            f"temperature: got {temperature}, must be above 0",
        )
    for top_k in (0, -1):
        raises(lambda: generate(Chain(case), _prompt(case), 1, top_k=top_k), f"top_k: got {top_k}, must be at least 1")  # noqa: B023
