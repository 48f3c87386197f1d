"""Grades the notebooks of a class: the same checks as in the notebook, on code that is kept in a sandbox."""
