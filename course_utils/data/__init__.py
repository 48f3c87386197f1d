"""Data sets of the course: generated, or shipped by a dependency. Nothing is downloaded."""
