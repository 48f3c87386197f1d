"""Who bites whom: training the small readers of notebooks 03 and 05."""

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..data.roles import RoleData, role_data
from ..training import seed_everything, train


def role_batches(data: RoleData, batch_size: int = 128, seed: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
    """Endless random batches of tokens (B, 8) and roles (B, 2)."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        i = torch.randint(len(data), (batch_size,), generator=generator)
        yield data.tokens[i], data.roles[i]


def train_role_reader(
    make_model: Callable[[], nn.Module],
    *,
    steps: int = 600,
    lr: float = 1e-2,
    seed: int = 0,
    label: str = "role reader",
) -> tuple[nn.Module, float]:
    """Train a model that names the biter (B, V), or biter and bitten (B, 2, V); the model and its test accuracy.

    A sentence counts as right when everything asked for is right. Test sentences pair nouns that training never pairs.
    """
    train_set, test_set = role_data(seed=seed)
    seed_everything(seed)
    model = make_model()

    def answers(roles: Tensor, logits: Tensor) -> Tensor:
        return roles if logits.dim() == 3 else roles[:, 0]

    def loss_of(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        logits = model(batch[0])
        return F.cross_entropy(logits.flatten(0, -2), answers(batch[1], logits).flatten())

    train(model, loss_of, role_batches(train_set, seed=seed), steps, lr=lr, warmup=1, label=label)
    return model, role_accuracy(model, test_set)


@torch.no_grad()
def role_accuracy(model: nn.Module, data: RoleData) -> float:
    """Share of sentences in which everything asked for is right."""
    logits = model(data.tokens)
    right = logits.argmax(dim=-1) == (data.roles if logits.dim() == 3 else data.roles[:, 0])
    return (right.all(dim=1) if right.dim() == 2 else right).double().mean().item()
