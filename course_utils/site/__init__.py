"""`course site`: every solved lesson as a page that needs neither Python nor a network.

    solutions/*.ipynb  ->  site/index.html          what there is, and how long it takes
                           site/NN_name.html        a lesson: text, code, outputs, living widgets
                           site/site.css, site.js   shared by all pages

Importing this package is cheap: what reads and writes notebooks is imported when it is needed.
"""

from pathlib import Path

__all__ = ["build_site"]


def build_site(root: str | Path, out: str | Path) -> list[Path]:
    """Write the pages of the solved lessons in `root`/solutions into the folder `out`; returns all their files.

    The same notebooks give the same files, byte for byte. Files of an earlier run that are no longer made are
    removed; nothing else in the folder is touched. Raises `CourseError` if a tool is missing, a lesson or a formula
    cannot be read, or `out` holds something that is not such a site.
    """
    from .build import write_site

    return write_site(Path(root), Path(out))
