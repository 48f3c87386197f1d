"""The recipe of `layer_norm`, and its misconceptions."""

from course_utils.checks.model import Misconception
from course_utils.checks.shared import write_into


def assemble(s):
    """Layer normalisation from its steps."""

    def run(x, gamma, beta, eps):
        x = s.prepare(x, gamma, beta)
        centred = s.centre(x, s.mean(x))
        return s.affine(s.divide(centred, s.variance(x, centred), eps), gamma, beta)

    return run


RIGHT = {
    "prepare": lambda x, gamma, beta: x,
    "mean": lambda x: x.mean(-1, keepdim=True),
    "centre": lambda x, mean: x - mean,
    "variance": lambda x, centred: centred.pow(2).mean(-1, keepdim=True),
    "divide": lambda centred, variance, eps: centred / (variance + eps).sqrt(),
    "affine": lambda normal, gamma, beta: normal * gamma + beta,
}


def _over(*dims):
    """Mean and variance over these axes; over all of them if none is named."""
    return _over_those(lambda x: dims or None)


def _over_those(axes):
    """Mean and variance over the axes that `axes` finds in x."""
    return {
        "mean": lambda x: x.mean(axes(x), keepdim=True),
        "variance": lambda x, centred: x.var(axes(x), unbiased=False, keepdim=True),
    }


def _all_but_last(x):
    return tuple(range(x.dim() - 1)) or (0,)


def _all_but_first(x):
    return tuple(range(1, x.dim())) or (0,)


def _about_zero(x, centred):
    return x.pow(2).mean(-1, keepdim=True)


def _unbiased(x, centred):
    return x.var(-1, keepdim=True)


def _eps_outside(centred, variance, eps):
    return centred / (variance.sqrt() + eps)


def _difference_of_squares(x, centred):
    return x.pow(2).mean(-1, keepdim=True) - x.mean(-1, keepdim=True).pow(2)


def _share_of_mean(x, eps):
    return x.mean(-1, keepdim=True) / (x.var(-1, unbiased=False, keepdim=True) + eps).sqrt()


def _only_mean_divided(x, gamma, beta, eps):
    return (x - _share_of_mean(x, eps)) * gamma + beta


def _only_mean_divided_and_scaled(x, gamma, beta, eps):
    return x - _share_of_mean(x, eps) * gamma + beta


def _fixed(eps):
    return {"divide": lambda centred, variance, given: centred / (variance + eps).sqrt()}


def _mean_detached(x):
    return x.mean(-1, keepdim=True).detach()


def _variance_detached(x, centred):
    return x.var(-1, unbiased=False, keepdim=True).detach()


def _centre_in_place(x, mean):
    return write_into(x, x - mean)


_SAME_KEEPDIM = "x.mean(dim=-1, keepdim=True), and the same for the variance"
_NORMAL_THEN_AFFINE = "centred / torch.sqrt(variance + eps) * gamma + beta"

MISCONCEPTIONS = (
    Misconception(
        "ln_eps_outside",
        "eps is added to the standard deviation instead of to the variance under the root.",
        ("What does eps protect from 0: the root, or what is under it?",
         "An ordinary vector hardly shows it: take eps = 0.5.",
         "torch.sqrt(variance + eps)"),
        ({"divide": _eps_outside},),
    ),
    Misconception(
        "ln_unbiased_eps_outside",
        "Two differences at once: std() divides by n - 1, and eps is added outside the root.",
        ("What does torch.std divide by, unless it is told otherwise?",
         "Compare with nn.LayerNorm on vectors of four numbers, with eps = 0.5.",
         "torch.sqrt(x.var(dim=-1, keepdim=True, unbiased=False) + eps)"),
        ({"variance": _unbiased, "divide": _eps_outside},),
        convention="the variance is the mean of the squares (divided by n), and eps is under the root.",
    ),
    Misconception(
        "ln_unbiased",
        "The variance is divided by n - 1 instead of n.",
        ("What does torch.var divide by, unless it is told otherwise?", "Take a vector of two numbers: 1 and 3.",
         "x.var(dim=-1, keepdim=True, unbiased=False)"),
        ({"variance": _unbiased},),
        convention="the variance is the mean of the squares (divided by n).",
    ),
    Misconception(
        "ln_batch_axis",
        "Mean and variance run over the sentences of the batch: that is batch norm.",
        ("Does the result for one sentence change when another one joins the batch?",
         "Which axis disappears in your mean?", "dim=-1, keepdim=True"),
        (_over(0), _over(0, 1), _over_those(_all_but_last)),
    ),
    Misconception(
        "ln_time_axis",
        "Mean and variance run over the positions instead of over the features of one vector.",
        ("Does the result for one word change when another word of its sentence does?",
         "x is (B, T, d): which axis disappears in your mean?", "dim=-1, keepdim=True"),
        (_over(1), _over(-2)),
    ),
    Misconception(
        "ln_sentence",
        "There is one mean and one variance for each sentence: all its words are normalised together.",
        ("How many means has a sentence of three words?", "Over how many axes does your mean run?",
         "dim=-1, keepdim=True"),
        (_over(-2, -1), _over(1, 2), _over_those(_all_but_first)),
    ),
    Misconception(
        "ln_global",
        "There is one mean and one variance for the whole tensor.",
        ("How many means has a batch of two sentences of three words?",
         "Print the shape of your mean: it should be that of x, with a 1 at the end.", _SAME_KEEPDIM),
        (_over(),
         {"mean": lambda x: x.mean(), "variance": lambda x, centred: x.var()},
         {"mean": lambda x: x.mean(), "variance": lambda x, centred: x.var(), "divide": _eps_outside},
         {"mean": lambda x: x.mean()}, {"variance": lambda x, centred: x.var(unbiased=False)}),
    ),
    Misconception(
        "ln_keepdim",
        "keepdim is missing: means of shape (B, T) do not line up with x of shape (B, T, d).",
        ("Which axis of x meets the last axis of your mean?", "Print both shapes.", _SAME_KEEPDIM),
        ({"mean": lambda x: x.mean(-1)},
         {"variance": lambda x, centred: x.var(-1, unbiased=False)},
         {"mean": lambda x: x.mean(-1), "variance": lambda x, centred: x.var(-1, unbiased=False)}),
    ),
    Misconception(
        "ln_no_affine",
        "gamma and beta are not used.",
        ("Which arguments have no effect?", "Fresh values 1 and 0 hide it: set beta to 3.", _NORMAL_THEN_AFFINE),
        ({"affine": lambda normal, gamma, beta: normal},),
    ),
    Misconception(
        "ln_no_gamma",
        "gamma is not used.",
        ("Which argument has no effect?", "Fresh values hide it: set gamma to 2.", _NORMAL_THEN_AFFINE),
        ({"affine": lambda normal, gamma, beta: normal + beta},),
    ),
    Misconception(
        "ln_no_beta",
        "beta is not used.",
        ("Which argument has no effect?", "Fresh values hide it: set beta to 3.", _NORMAL_THEN_AFFINE),
        ({"affine": lambda normal, gamma, beta: normal * gamma},),
    ),
    Misconception(
        "ln_affine_first",
        "gamma and beta are applied before normalising, which takes them out again.",
        ("What is left of a constant that was added to the whole vector before its mean is subtracted?",
         "In which order does the formula name them?", _NORMAL_THEN_AFFINE),
        ({"prepare": lambda x, gamma, beta: x * gamma + beta, "affine": lambda normal, gamma, beta: normal},),
    ),
    Misconception(
        "ln_beta_scaled",
        "beta is added before the multiplication by gamma, so it is scaled, too.",
        ("Follow the brackets: what does gamma multiply?", "Set gamma to 0: what should be left?",
         _NORMAL_THEN_AFFINE),
        ({"affine": lambda normal, gamma, beta: (normal + beta) * gamma},),
    ),
    Misconception(
        "ln_beta_multiplied",
        "beta is multiplied instead of added.",
        ("What shifts, and what scales?", "Set beta to 0: what should be left?", _NORMAL_THEN_AFFINE),
        ({"affine": lambda normal, gamma, beta: normal * gamma * beta},),
    ),
    Misconception(
        "ln_gamma_beta_swapped",
        "gamma and beta have changed places.",
        ("Which of the two scales, which shifts?", "Set beta to 0: what should be left?", _NORMAL_THEN_AFFINE),
        ({"affine": lambda normal, gamma, beta: normal * beta + gamma},),
    ),
    Misconception(
        "ln_gamma_plus_one",
        "The scale is 1 + gamma instead of gamma.",
        ("What should come out for gamma = 0?", "Look at the factor of the last line.", _NORMAL_THEN_AFFINE),
        ({"affine": lambda normal, gamma, beta: normal * (1 + gamma) + beta},),
        convention="gamma itself is the scale; it starts at 1.",
    ),
    Misconception(
        "ln_no_centering",
        "The mean is not subtracted (that would be an RMS norm).",
        ("What is the mean of each vector before gamma and beta?", "Add 100 to a vector: the result must not change.",
         "centred = x - x.mean(dim=-1, keepdim=True)"),
        ({"centre": lambda x, mean: x}, {"centre": lambda x, mean: x, "variance": _about_zero},
         {"centre": lambda x, mean: x, "variance": lambda x, centred: x.var(-1, unbiased=False, keepdim=True)}),
    ),
    Misconception(
        "ln_variance_about_zero",
        "The variance is the mean of x squared: the mean was not subtracted first.",
        ("What is the variance of 5, 5, 5?", "Add 100 to a vector: the result must not change.",
         "variance = centred.pow(2).mean(dim=-1, keepdim=True)"),
        ({"variance": _about_zero},),
    ),
    Misconception(
        "ln_no_division",
        "The mean is subtracted, and nothing is divided by the standard deviation.",
        ("What is the variance of each vector before gamma and beta?",
         "Multiply a vector by 10: the result must hardly change.", "/ torch.sqrt(variance + eps)"),
        ({"divide": lambda centred, variance, eps: centred},),
    ),
    Misconception(
        "ln_no_root",
        "The division is by the variance instead of by its root, the standard deviation.",
        ("Multiply a vector by 10: does the result stay as it was?", "What are the units of a variance?",
         "/ torch.sqrt(variance + eps)"),
        ({"divide": lambda centred, variance, eps: centred / (variance + eps)},),
    ),
    Misconception(
        "ln_brackets",
        "Brackets are missing: only the mean is divided, not the difference.",
        ("What does the division apply to?", "Division comes before subtraction: x - mean / std is x - (mean / std).",
         "(x - mean) / torch.sqrt(variance + eps)"),
        ({"whole": _only_mean_divided}, {"whole": _only_mean_divided_and_scaled}),
    ),
    Misconception(
        "ln_root_twice",
        "The root is taken twice: of a standard deviation.",
        ("Is what stands under your root a variance?", "std is the root of var.",
         "torch.sqrt(variance + eps), with a variance"),
        ({"divide": lambda centred, variance, eps: centred / (variance.sqrt() + eps).sqrt()},
         {"variance": _unbiased, "divide": lambda centred, variance, eps: centred / (variance.sqrt() + eps).sqrt()}),
    ),
    Misconception(
        "ln_root_multiplied",
        "Multiplied by the standard deviation instead of divided.",
        ("Does a vector of large numbers become smaller?", "Multiply a vector by 10: the result must hardly change.",
         "/ torch.sqrt(variance + eps)"),
        ({"divide": lambda centred, variance, eps: centred * (variance + eps).sqrt()},),
    ),
    Misconception(
        "ln_eps_ignored",
        "The argument eps has no effect.",
        ("Is there an argument that you did not use?", "What comes out for a vector of equal numbers?",
         "torch.sqrt(variance + eps)"),
        (_fixed(0.0), _fixed(1e-5), _fixed(1e-6), _fixed(1e-8), _fixed(1e-12)),
    ),
    Misconception(
        "ln_stats_detached",
        "Mean or variance count as constants in the backward pass: no gradient flows through them.",
        ("Which of your lines leave the graph?",
         "Look for detach, .data, .item() and no_grad. The forward pass is right.",
         "Mean and variance are ordinary tensors, computed like everything else."),
        ({"mean": _mean_detached, "variance": _variance_detached}, {"variance": _variance_detached},
         {"mean": _mean_detached}),
    ),
    Misconception(
        "ln_in_place",
        "x is overwritten, and with it what the caller wanted to keep.",
        ("What does x look like after the call?", "Look for `x -=`, `x /=`, `x[...] =` and names that end in _.",
         "centred = x - mean, a new tensor"),
        ({"centre": _centre_in_place},),
        symptom=lambda got, want: "x" in got.changed,
    ),
    Misconception(
        "ln_two_pass_unstable",
        "The variance is a difference of two large numbers, the mean of the squares minus the square of the mean: "
        "far from zero no digit of it is right.",
        ("How many digits has a float32?", "Compute by hand for 10000, 10001, 10002.",
         "variance = centred.pow(2).mean(dim=-1, keepdim=True)"),
        ({"variance": _difference_of_squares},
         {"variance": lambda x, centred: _difference_of_squares(x, centred).clamp(min=0)}),
    ),
)  # fmt: skip
