"""What attention costs: the counters on computations whose cost is known, and heads that are taken away."""

import pytest
import torch
from torch import nn

from course_utils import experiments
from course_utils.attention import scaled_dot_product_attention
from course_utils.data.roles import NOUNS, WORDS, RoleData, role_data
from course_utils.experiments import (
    generate_greedily,
    head_focus,
    median_seconds,
    peak_bytes,
    role_loss,
    without_head,
)
from course_utils.multihead import MultiHeadAttention
from course_utils.role_models import MultiHeadReader
from course_utils.transformer import LanguageModel

GIVEN = torch.zeros(1000)


def chain(n: int) -> torch.Tensor:
    x = torch.zeros(1000)
    for _ in range(n):
        x = x + 1
    return x


@pytest.mark.parametrize(
    "compute, expected",
    [
        (lambda: torch.zeros(1000), 4000),
        (lambda: torch.zeros(1000, dtype=torch.float64), 8000),
        (lambda: torch.zeros(1000) + 1, 8000),
        (lambda: torch.tensor([0.0] * 1000), 4000),
        (lambda: chain(50), 8000),  # one that is read, one that is written
        (lambda: [torch.zeros(1000) for _ in range(5)], 20_000),
        (lambda: GIVEN, 0),
        (lambda: GIVEN + 1, 4000),
        (lambda: GIVEN.view(10, 100).t()[2:], 0),
        (lambda: GIVEN.add_(0).mul_(1), 0),
        (lambda: torch.zeros(1000).add_(1).view(10, 100).t(), 4000),
        (lambda: torch.zeros(10, 100).split(2), 4000),
        (lambda: None, 0),
    ],
)
def test_peak_bytes_of_a_known_computation_is_exact(compute, expected):
    assert peak_bytes(compute) == expected
    assert peak_bytes(compute) == expected, "and again"


def test_peak_bytes_counts_what_is_held_at_one_time():
    def compute():
        a = torch.zeros(1000)
        b = torch.zeros(3000)
        del b
        c = torch.zeros(500)
        return a, c

    assert peak_bytes(compute) == 16_000


def test_peak_bytes_of_attention_are_its_scores():
    q = torch.zeros(1, 512, 8)
    scores = 512 * 512 * 4
    assert 2 * scores <= peak_bytes(lambda: scaled_dot_product_attention(q, q, q)) <= 2.2 * scores


def test_peak_bytes_records_no_gradient():
    layer = nn.Linear(4, 4)
    made = []
    peak_bytes(lambda: made.append(layer(torch.zeros(1, 4))))
    assert not made[0].requires_grad


def test_median_seconds_is_the_median_of_its_repeats(monkeypatch):
    ticks, calls = iter([0.0, 1.0, 10.0, 13.0, 20.0, 22.0]), []
    monkeypatch.setattr(experiments.cost.time, "perf_counter", lambda: next(ticks))
    assert median_seconds(lambda: calls.append(1), repeats=3) == 2.0
    assert len(calls) == 3


@pytest.fixture
def reader():
    torch.manual_seed(0)
    return MultiHeadReader(16, n_heads=4).double().eval()


@pytest.fixture(scope="module")
def data():
    return role_data(10, 60)[1]


def test_head_focus_is_the_mean_weight_on_each_noun(reader, data):
    focus = head_focus(reader, data)
    assert focus.shape == (4, 2) and (focus >= 0).all() and (focus <= 1).all() and (focus.sum(dim=1) <= 1).all()
    expected = torch.zeros(4, 2, dtype=torch.float64)
    for i in range(len(data)):
        reader(data.tokens[i : i + 1])
        for role in range(2):
            place = data.tokens[i].tolist().index(WORDS.index(NOUNS[data.roles[i, role]]))
            expected[:, role] += reader.layers[0].weights[0, :, 0, place] / len(data)
    torch.testing.assert_close(focus, expected)


def test_a_head_that_looks_at_a_noun_alone_has_focus_one():
    class Looking(nn.Module):
        def forward(self, x, x_kv=None, mask=None):
            self.weights = torch.zeros(1, 1, 8, 8)
            self.weights[0, 0, 0, 2] = 1.0  # <cls> the NOUN
            return x

    tokens = torch.tensor([[1, 2, 3 + 7, 3 + len(NOUNS), 2, 3 + 9, 0, 0]])
    model = MultiHeadReader(8, attention=lambda d, n: Looking())
    assert head_focus(model, RoleData(tokens, torch.tensor([[7, 9]]))).tolist() == [[1.0, 0.0]]


def test_without_a_head_is_the_accuracy_with_its_part_of_the_output_removed(reader, data):
    class Deaf(MultiHeadAttention):
        """The first head's output is zero."""

        def attend(self, q, k, v, mask):
            out = super().attend(q, k, v, mask)
            return out * torch.tensor([0.0, 1.0, 1.0, 1.0]).view(4, 1, 1)

    deaf = MultiHeadReader(16, n_heads=4, attention=Deaf).double()
    deaf.load_state_dict(reader.state_dict())
    right = (deaf(data.tokens).argmax(dim=-1) == data.roles).double().mean(dim=0)
    assert without_head(reader, 0, data) == tuple(right.tolist())
    loss = -deaf(data.tokens).log_softmax(-1).gather(-1, data.roles.unsqueeze(-1)).mean().item()
    assert role_loss(reader, data, without=0) == pytest.approx(loss, rel=1e-9)
    whole = -reader(data.tokens).log_softmax(-1).gather(-1, data.roles.unsqueeze(-1)).mean().item()
    assert role_loss(reader, data) == pytest.approx(whole, rel=1e-9)


def test_without_a_head_the_weights_come_back(reader, data):
    before = {name: p.clone() for name, p in reader.named_parameters()}
    for head in range(4):
        assert all(0 <= share <= 1 for share in without_head(reader, head, data))
    with pytest.raises(IndexError):
        without_head(reader, 1, RoleData(data.tokens + 1000, data.roles))
    for name, p in reader.named_parameters():
        assert torch.equal(p, before[name]) and p.requires_grad


def test_a_head_that_is_needed_is_missed():
    """One head alone: without it nothing but the start symbol is left, and every answer is the same."""
    model, both = experiments.train_role_reader(lambda: MultiHeadReader(n_heads=1, d=16), steps=40)
    data = role_data(seed=0)[1]
    biter, bitten = without_head(model, 0, data)
    most = [torch.bincount(data.roles[:, i]).max().item() / len(data) for i in range(2)]
    assert biter <= most[0] and bitten <= most[1]
    assert experiments.role_accuracy(model, data) == both


@pytest.mark.parametrize("positions", LanguageModel.POSITIONS)
def test_generating_with_a_cache_is_generating_without(positions):
    torch.manual_seed(2)
    model = LanguageModel(9, 16, n_layers=2, n_heads=2, block_size=20, positions=positions).double()
    # Tied to the embedding, a fresh model repeats its last symbol; rolled by one, it counts.
    model.head.weight = nn.Parameter(model.emb.weight.detach().roll(1, dims=0))
    prompt = torch.randint(9, (8, 5))
    plain, cached = (generate_greedily(model, prompt, 15, cached=cached) for cached in (False, True))
    assert plain.shape == (8, 20) and torch.equal(plain[:, :5], prompt)
    assert torch.equal(plain, cached)
    assert plain[:, 10:].unique().numel() > 3, "a text that says something"


def test_generating_greedily_appends_the_likeliest_symbol():
    torch.manual_seed(2)
    model, idx = LanguageModel(9, 16, n_layers=1, n_heads=2, block_size=20), torch.randint(9, (2, 3))
    made = generate_greedily(model, idx, 4, cached=True)
    for t in range(3, 7):
        assert torch.equal(made[:, t], model(made[:, :t])[:, -1].argmax(dim=-1))
    assert torch.equal(generate_greedily(model, idx, 0, cached=True), idx)


def test_a_cached_model_reads_one_symbol_at_a_time():
    class Spy(LanguageModel):
        def forward(self, idx, caches=None):
            read.append(idx.shape[1])
            return super().forward(idx, caches)

    model = Spy(9, 8, n_layers=1, n_heads=2)
    for cached, expected in ((True, [3, 1, 1, 1]), (False, [3, 4, 5, 6])):
        read: list[int] = []
        generate_greedily(model, torch.zeros(1, 3, dtype=torch.long), 4, cached=cached)
        assert read == expected
