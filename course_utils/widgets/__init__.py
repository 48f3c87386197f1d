"""Interactive views, each with a still twin, a table of its numbers and a description in words.

Each name is imported when it is first used, so that importing this package loads neither anywidget nor matplotlib.
How a widget is written: docs/widgets.md.
"""

from importlib import import_module

# One line a widget: the class, and the module (with a .js of the same name beside it).
_HOME = {
    "CourseWidget": "base",
    "DotProductSteps": "dot_product_steps",
    "Permutation": "permutation",
    "Temperature": "temperature",
    "AdditiveAlignment": "additive_alignment",
    "AttentionViewer": "attention_viewer",
    "CostCalculator": "cost_calculator",
    "RNNBottleneck": "rnn_bottleneck",
    "BlockStepper": "block_stepper",
    "HeadsGrid": "heads_grid",
    "ImagePatches": "image_patches",
    "Positions": "positions",
    "MaskEditor": "mask_editor",
}

__all__ = [
    "AdditiveAlignment",
    "AttentionViewer",
    "BlockStepper",
    "CostCalculator",
    "CourseWidget",
    "DotProductSteps",
    "HeadsGrid",
    "ImagePatches",
    "MaskEditor",
    "Permutation",
    "Positions",
    "RNNBottleneck",
    "Temperature",
]


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
