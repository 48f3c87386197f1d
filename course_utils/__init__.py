"""The package behind the notebooks of the course on attention and transformers."""
