"""Experiments on images: instruments on cases with a known answer, and what the committed runs show."""

import math

import pytest
import torch
from torch import nn

from course_utils import experiments, measured
from course_utils.data.images import ImageSet
from course_utils.image_baselines import SmallCNN, SmallMLP
from course_utils.multihead import MultiHeadAttention
from course_utils.vision import VisionTransformer, ViTEmbedding, patchify


def bright_quarter(n: int, seed: int = 0) -> ImageSet:
    """Images of 4 x 4 pixels; the class is the quarter that is bright."""
    labels = torch.randint(4, (n,), generator=torch.Generator().manual_seed(seed))
    images = 0.1 * torch.rand(n, 1, 4, 4, generator=torch.Generator().manual_seed(seed + 1))
    for image, label in zip(images[:, 0], labels.tolist(), strict=True):
        r, c = divmod(label, 2)
        image[2 * r : 2 * r + 2, 2 * c : 2 * c + 2] += 0.8
    return ImageSet(images, labels)


DATA = bright_quarter(100), bright_quarter(200, seed=5)


class Oracle(nn.Module):
    """The brightest quarter, as scores."""

    def forward(self, images):
        return patchify(images, 2).mean(dim=-1)


def test_accuracy_is_the_share_of_right_answers():
    assert experiments.image_accuracy(Oracle(), DATA[1]) == 1.0
    wrong = ImageSet(DATA[1].images, (DATA[1].labels + (torch.arange(200) < 50)) % 4)
    assert experiments.image_accuracy(Oracle(), wrong) == 0.75


MODELS = {
    "ViT": lambda: VisionTransformer(4, 2, n_classes=4, d_model=8, n_heads=2, n_layers=1),
    "CNN": lambda: SmallCNN(4, n_classes=4),
    "MLP": lambda: SmallMLP(4, n_classes=4),
}


@pytest.mark.parametrize("name", MODELS)
def test_an_easy_task_is_learned(name):
    _, accuracy = experiments.train_image_classifier(MODELS[name], DATA, steps=150, lr=1e-2)
    assert accuracy > 0.9


def test_the_same_seed_gives_the_same_images_and_the_same_result():
    seen = []

    class Spy(SmallMLP):
        def forward(self, images):
            if self.training:
                seen.append(images)
            return super().forward(images)

    runs = [experiments.train_image_classifier(lambda: Spy(4), DATA, n=5, steps=3, seed=seed) for seed in (3, 3, 4)]
    first, again, other = (torch.stack(seen[i : i + 3]) for i in (0, 3, 6))
    assert torch.equal(first, again) and not torch.equal(first, other)
    assert runs[0][1] == runs[1][1]
    known = {image.numpy().tobytes() for image in DATA[0].subset(5, 3).images}
    assert {image.numpy().tobytes() for image in first.flatten(0, 1)} <= known, "no more than n images"


def test_shuffled_patches_are_the_same_patches_elsewhere():
    order = experiments.shuffled_patches(4, seed=2)
    assert sorted(order.tolist()) == [0, 1, 2, 3]
    moved = experiments.shuffle_patches(DATA[1], 2, order)
    assert torch.equal(patchify(moved.images, 2), patchify(DATA[1].images, 2)[:, order])
    assert torch.equal(moved.labels, DATA[1].labels)
    back = experiments.shuffle_patches(moved, 2, order.argsort())
    assert torch.equal(back.images, DATA[1].images)


def test_shuffling_uses_the_function_it_is_given():
    calls = []

    def cut(images, p):
        calls.append(p)
        return patchify(images, p)

    experiments.shuffle_patches(DATA[1], 1, experiments.shuffled_patches(16), cut)
    assert calls == [1]


def test_ink_and_correlation_are_what_they_are_called():
    assert (experiments.ink(DATA[1].images, 2).argmax(dim=1) == DATA[1].labels).all()
    a = torch.randn(5, 7, generator=torch.Generator().manual_seed(0))
    assert experiments.correlation(a, 2 * a + 1) == pytest.approx(1)
    assert experiments.correlation(a, -a) == pytest.approx(-1)
    assert abs(experiments.correlation(torch.tensor([1.0, 1, 2, 2]), torch.tensor([1.0, 2, 1, 2]))) < 1e-9


def test_without_the_decisive_patch_nothing_is_known_and_without_the_others_everything():
    ink = experiments.ink(DATA[1].images, 2)
    assert experiments.accuracy_without(Oracle(), DATA[1], 2, ink, 1) == 0
    assert experiments.accuracy_without(Oracle(), DATA[1], 2, ink, 3, largest=False) == 1
    assert experiments.accuracy_without(Oracle(), DATA[1], 2, -ink, 3) == 1


def test_distances_on_a_grid():
    d = experiments.grid_distance(2, 3)
    assert d.shape == (6, 6) and torch.equal(d, d.T) and d.diagonal().abs().max() == 0
    assert d[0, 1] == 1 and d[0, 3] == 1 and d[0, 5].item() == pytest.approx(math.sqrt(5), rel=1e-6)


def looked_into() -> VisionTransformer:
    torch.manual_seed(0)
    return VisionTransformer(8, 2, d_model=8, n_heads=2, n_layers=2, attention=MultiHeadAttention).eval()


def test_maps_are_the_row_of_the_class_token():
    model, images = looked_into(), torch.rand(3, 1, 8, 8)
    maps = experiments.patch_maps(model, images)
    first, last = model.attention_weights(images)
    assert torch.equal(maps["raw attention"], last.mean(dim=1)[:, 0, 1:])
    by_hand = (last.mean(1) + torch.eye(17)) / 2 @ ((first.mean(1) + torch.eye(17)) / 2)
    torch.testing.assert_close(maps["rollout"], by_hand[:, 0, 1:])


def test_a_copy_to_look_into_gives_the_same_scores():
    torch.manual_seed(0)
    model, images = VisionTransformer(8, 4, d_model=8, n_heads=2).eval(), torch.rand(3, 1, 8, 8)
    with pytest.raises(ValueError, match="do not tell the weights"):
        model.attention_weights(images)
    reader = experiments.readable_vit(model)
    torch.testing.assert_close(reader(images), model(images), atol=1e-5, rtol=1e-5)
    for weights in reader.attention_weights(images):
        assert weights.shape == (3, 2, 5, 5)
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(3, 2, 5))


def test_parts_in_another_form_cannot_be_looked_into():
    class OtherBlock(nn.Module):
        def __init__(self, d_model, n_heads, d_ff, dropout=0.0):
            super().__init__()
            self.layer = nn.TransformerEncoderLayer(d_model, n_heads, d_ff, dropout, batch_first=True, norm_first=True)

        def forward(self, x, mask=None):
            return self.layer(x)

    class OtherEmbedding(ViTEmbedding):
        def __init__(self, *sizes):
            super().__init__(*sizes)
            self.positions = self.pos_embed
            del self.pos_embed

        def forward(self, images):
            return self.positions.expand(len(images), -1, -1)

    small = {"d_model": 8, "n_heads": 2}
    assert experiments.readable_vit(VisionTransformer(8, 4, block=OtherBlock, **small)) is None
    assert experiments.readable_vit(VisionTransformer(8, 4, embedding=OtherEmbedding, **small)) is None


def test_the_looking_distance_of_equal_weights_is_the_mean_distance():
    model, grid = looked_into(), experiments.grid_distance(4, 4)
    with torch.no_grad():
        for block in model.blocks:  # scores of zero: equal weights on all
            block.attn.W_q.weight.zero_(), block.attn.W_q.bias.zero_()
    far = experiments.looking_distance(model, torch.rand(2, 1, 8, 8), grid)
    torch.testing.assert_close(far, torch.full((2, 2), grid.mean().item()))


def test_positions_that_are_equal_are_alike():
    model = looked_into()
    with torch.no_grad():
        model.embed.pos_embed[0, 3] = 2 * model.embed.pos_embed[0, 1]  # of patches 0 and 2
    alike = experiments.position_likeness(model)
    assert alike.shape == (16, 16) and alike[0, 2].item() == pytest.approx(1, abs=1e-5)
    torch.testing.assert_close(alike.diagonal(), torch.ones(16))


def table(name: str) -> dict:
    if not (measured.FOLDER / f"{name}.json").is_file():
        pytest.skip("not measured yet")
    return measured.load(name)


def test_measured_a_vit_needs_more_images_than_a_cnn():
    accuracy = table("image_sizes")["accuracy"]
    for n in ("100", "300", "1000"):
        assert max(accuracy["ViT"][n]) < min(accuracy["MLP"][n]) < min(accuracy["CNN"][n])
    gaps = {n: min(accuracy["CNN"][n]) - max(accuracy["ViT"][n]) for n in ("300", "4000")}
    assert gaps["300"] >= 0.08 and 0 < gaps["4000"] < gaps["300"] / 2


def test_measured_a_shuffle_costs_who_relies_on_neighbours():
    before, after = table("image_sizes")["accuracy"], table("image_shuffles")["accuracy"]
    for now, then in zip(after["pixels"]["CNN"], before["CNN"]["300"], strict=True):
        assert then - now >= 0.05
    assert max(after["pixels"]["CNN"]) < min(after["pixels"]["MLP"])
    for what in ("patches", "pixels"):
        for now, then in zip(after[what]["MLP"], before["MLP"]["300"], strict=True):
            assert abs(then - now) <= 0.03
    assert max(after["patches"]["CNN"]) < min(before["CNN"]["300"])
    for what in ("patches", "pixels"):
        assert min(after[what]["ViT"]) >= min(before["ViT"]["300"]) - 0.04, "nothing in a ViT expects neighbours"


def test_measured_positions_matter_and_small_patches_are_not_always_better():
    digits = table("image_patches")
    assert min(digits["accuracy"]["2"]) >= 0.93
    assert max(digits["without_positions"]["2"]) <= min(digits["accuracy"]["2"]) - 0.15
    assert min(digits["accuracy"]["4"]) >= max(digits["accuracy"]["1"])
    mnist = table("image_sizes")["accuracy"]
    assert max(mnist["ViT without positions"]["4000"]) < min(mnist["ViT"]["4000"])


def test_measured_maps_say_where_the_middle_is():
    maps = table("image_maps")
    for i, average in enumerate(maps["average_ink"]):
        assert average > maps["ink"]["rollout"][i] + 0.1
        assert abs(maps["ink_beyond_average"]["rollout"][i]) <= 0.25
        assert maps["same_top"][i] <= 0.9
        assert maps["six_lowest"]["rollout"][i] >= 0.8
        assert maps["four_highest"]["ink"][i] <= maps["four_highest"]["rollout"][i] + 0.02
        assert maps["six_lowest"]["raw attention"][i] <= maps["six_lowest"]["rollout"][i]
        assert maps["neighbours"][i] < 0.2
        assert min(maps["distance"][i][0]) >= 1.5
