"""What is said about errors, written arguments and weights of other sizes."""

from course_utils.checks.values import Call, Outcome, Raised


def tell_changed(changed: tuple[str, ...]) -> str:
    """That arguments were written to."""
    names = " and ".join(f"`{n}`" for n in changed)
    verb = "is" if len(changed) == 1 else "are"
    return f"After the call {names} {verb} not what the caller passed in: your code writes into its arguments."


def tell_misfits(got: Outcome, call: Call) -> str:
    """That weights have other sizes than the statement says."""
    weights = call.construction.weights
    told = [f"`{n}` has shape {shape}, not {tuple(weights[n].shape)}" for n, shape in got.inside.misfits.items()]
    made = ", ".join(f"{n}={v}" for n, v in call.construction.arguments.items())
    return f"With {made}, the weights of your module do not have the sizes of the statement: {'; '.join(told)}."


def tell_error(error: Raised, call: Call) -> str:
    """An error of the student's code, with the line."""
    if error.kind == "TypeError" and error.line is None and "argument" in error.message:
        arguments, what = call.arguments, "Your function cannot be called"
        if error.stage == "make":
            arguments, what = call.construction.arguments, "An instance of your class cannot be made"
        elif call.construction is not None:
            what = "Your `forward` cannot be called"
        count = "the argument" if len(arguments) == 1 else f"the {len(arguments)} arguments"
        return f"{what} with {count} ({', '.join(arguments)}), in this order: {error.message}"
    if error.kind == "RecursionError":
        return "Your function calls itself without end (RecursionError). What ends the recursion?"
    where = f" in line {error.line}: `{error.source}`" if error.line and error.source else ""
    if not where and error.line:
        where = f" in line {error.line}"
    if error.stage == "copy":
        where += " while weights are copied into your module"
    return f"Your code raises {error.kind}{where}" + (f" — {error.message}" if error.message else "")
