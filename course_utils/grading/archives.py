"""Reads folders and archives entry by entry, never writing anything to disk, within limits.

What is left out is said: every entry of an archive is either offered as a file or listed with a reason.
"""

import bz2
import gzip
import io
import lzma
import os
import re
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import IO

from course_utils.grading.model import Unreadable
from course_utils.grading.notebook_file import MAX_BYTES

MAX_ENTRIES = 200_000
MAX_TOTAL = 4_000_000_000  # bytes that are unpacked from one archive
MAX_INNER = 200_000_000  # bytes of an archive inside another one
MAX_UNPACKED = 1_000_000_000  # bytes that are unpacked from such an archive
DEPTH = 2  # archives inside archives
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
SYSTEM = {"__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini", ".ipynb_checkpoints", "__pycache__", ".git", ".venv"}
OF_THE_SYSTEM = "a file of the system or of an editor"
A_LINK = "a link, which may lead anywhere"
A_LINK_OR_DEVICE = "a link or a device, which may lead anywhere"
LEADS_OUT = "its path leads out of the archive"
NEVER_READ = (OF_THE_SYSTEM, A_LINK, A_LINK_OR_DEVICE, LEADS_OUT)  # whatever is in them
WANTED = (".ipynb", ".yml", ".txt", *ARCHIVES)  # other files of an archive are listed, not read


DRIVE = re.compile(r"[A-Za-z]:")  # of Windows; a colon in somebody's name is harmless, since nothing is written


@dataclass(frozen=True)
class Entry:
    """A file in a folder or archive. `read` gives its bytes, or raises Unreadable with a reason."""

    path: PurePosixPath
    origin: str
    changed: datetime | None
    read: Callable[[], bytes]


@dataclass
class Source:
    """Everything that lies under one PATH of the command.

    owner: the folder that holds a single file, or the folder itself: the student where nothing else says who.
    left_out: (origin, reason).
    """

    name: str
    owner: str = ""
    entries: list[Entry] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)


def is_archive(name: str) -> bool:
    """Whether a file of this name is one that can be looked into."""
    return name.lower().endswith(ARCHIVES)


def read_source(path: Path, leave_out: Path | None = None) -> Source:
    """What lies under a path: a file, a folder (but for one inside it), or an archive."""
    whole = path.resolve()
    source = Source(whole.name, whole.name if whole.is_dir() else whole.parent.name)
    if path.is_dir():
        _folder(source, path, leave_out.resolve() if leave_out is not None else None)
    elif is_archive(path.name):
        _archive(source, path, path.name, PurePosixPath(), path.name, 1)
    else:
        source.entries.append(_file(path, PurePosixPath(path.name), str(path)))
    return source


def _file(path: Path, inside: PurePosixPath, origin: str) -> Entry:
    def read() -> bytes:
        try:
            with path.open("rb") as file:
                return _bounded(file)
        except OSError as error:
            raise Unreadable(f"The file cannot be read: {error.strerror}.") from None

    return Entry(inside, origin, datetime.fromtimestamp(path.stat().st_mtime), read)


def _folder(source: Source, root: Path, leave_out: Path | None) -> None:
    for folder, folders, files in os.walk(root):
        here = Path(folder)
        skipped = [name for name in folders if name in SYSTEM]
        source.left_out += [(_origin(source, root, here / name) + "/", OF_THE_SYSTEM) for name in skipped]
        source.left_out += [(_origin(source, root, here / n), A_LINK) for n in folders if (here / n).is_symlink()]
        folders[:] = sorted(n for n in folders if n not in SYSTEM and (here / n).resolve() != leave_out)
        for name in sorted(files):
            path = here / name
            inside, origin = PurePosixPath(path.relative_to(root).as_posix()), _origin(source, root, path)
            if path.is_symlink():
                source.left_out.append((origin, A_LINK))
            elif _system(inside) is not None:
                source.left_out.append((origin, OF_THE_SYSTEM))
            elif is_archive(name):
                _archive(source, path, name, inside, origin, 1)
            elif path.is_file():
                source.entries.append(_file(path, inside, origin))


def _origin(source: Source, root: Path, path: Path) -> str:
    return f"{source.name}/{path.relative_to(root).as_posix()}"


def _archive(source: Source, file: Path | IO[bytes], name: str, inside: PurePosixPath, origin: str, depth: int) -> None:
    """Add what is in an archive; one that is broken is listed as a whole."""
    try:
        members = _zip(file) if name.lower().endswith(".zip") else _tar(file, name)
        for number, (path, changed, wrong, data) in enumerate(members):
            here, why = f"{origin}/{path}", wrong or _unsafe(path)
            if number >= MAX_ENTRIES:
                source.left_out.append((origin, f"only the first {MAX_ENTRIES:,} entries were read"))
                return
            if why is None and (system := _system(PurePosixPath(path))) is not None:
                here, why = f"{origin}/{system}", OF_THE_SYSTEM
            if why is not None:
                if (here, why) not in source.left_out[-1:]:  # a folder of the system is listed once
                    source.left_out.append((here, why))
                continue
            whole = inside / PurePosixPath(path.replace("\\", "/"))
            if is_archive(path):
                if depth >= DEPTH:
                    source.left_out.append((here, "an archive inside an archive inside an archive"))
                else:
                    try:
                        _archive(source, io.BytesIO(data(MAX_INNER)), path, whole, here, depth + 1)
                    except Unreadable as error:
                        source.left_out.append((here, str(error)))
            else:
                source.entries.append(Entry(whole, here, changed, lambda data=data: data(MAX_BYTES)))
    except Unreadable as error:
        source.left_out.append((origin, str(error)))
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, OSError, lzma.LZMAError, ValueError) as error:
        source.left_out.append((origin, f"the archive is broken: {error}"))


Member = tuple[str, datetime | None, str | None, Callable[[int], bytes]]  # path, time, why it is left out, data


def _zip(file: Path | IO[bytes]) -> Iterator[Member]:
    archive = zipfile.ZipFile(file)  # stays open for as long as an entry may be read
    total = 0
    for info in archive.infolist():
        if info.is_dir():
            continue
        total += info.file_size  # more than that is not read, whatever is there
        if total > MAX_UNPACKED and not isinstance(file, Path):
            raise Unreadable(f"the archive unpacks to more than {MAX_UNPACKED // 10**6} MB; the rest was not read")
        why = None
        if info.flag_bits & 1:
            why = "protected by a password"
        elif stat.S_ISLNK(info.external_attr >> 16):
            why = A_LINK
        try:
            changed = datetime(*info.date_time)
        except ValueError:
            changed = None

        def data(limit: int, info: zipfile.ZipInfo = info) -> bytes:
            try:
                with archive.open(info) as member:
                    return _bounded(member, limit)
            except Unreadable:
                raise  # too large, which is no damage
            except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError, RuntimeError, ValueError) as error:
                raise Unreadable(f"The file is damaged inside the archive: {error}.") from None
            except Exception as error:  # zlib.error and lzma.LZMAError share no base
                raise Unreadable(f"The file is damaged inside the archive: {error}.") from None

        yield info.filename, changed, why, data


def _tar(file: Path | IO[bytes], name: str) -> Iterator[Member]:
    openers = {".gz": gzip.open, ".tgz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    opener = openers.get(Path(name).suffix.lower())
    if isinstance(file, Path) and opener is None:
        file = file.open("rb")
    unpacked = opener(file) if opener else file
    with unpacked, tarfile.open(fileobj=_Counted(unpacked), mode="r|") as archive:
        for info in archive:
            if info.isdir():
                continue
            changed = datetime.fromtimestamp(max(0, min(info.mtime, 4e9)))
            if not info.isfile():
                yield info.name, changed, A_LINK_OR_DEVICE, bytes
                continue
            content = b""
            if info.name.lower().endswith(WANTED) and (member := archive.extractfile(info)) is not None:
                content = _bounded(member, MAX_INNER if is_archive(info.name) else MAX_BYTES, refuse=False)

            def data(limit: int, content: bytes = content) -> bytes:
                return _bounded(io.BytesIO(content), limit)

            yield info.name, changed, None, data


class _Counted(io.RawIOBase):
    """A stream that ends with an error once more was unpacked than any class hands in."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream, self.count = stream, 0

    def read(self, size: int = -1) -> bytes:
        data = self.stream.read(size)
        self.count += len(data)
        if self.count > MAX_TOTAL:
            raise Unreadable(f"the archive unpacks to more than {MAX_TOTAL // 10**9} GB; the rest was not read")
        return data


def _bounded(file: IO[bytes], limit: int = MAX_BYTES, refuse: bool = True) -> bytes:
    """The whole file, if it is not larger than the limit; what its header says is not believed."""
    data = file.read(limit + 1)
    if len(data) > limit and refuse:
        raise Unreadable(
            f"The file is larger than {limit // 10**6} MB. If it is a notebook, its outputs make it so: clear them "
            "(Edit > Clear Outputs of All Cells), save, and submit again."
        )
    return data


def _unsafe(path: str) -> str | None:
    parts = path.replace("\\", "/").split("/")
    if path.startswith(("/", "\\")) or ".." in parts or DRIVE.match(path) or "\0" in path:
        return LEADS_OUT
    return None


def _system(path: PurePosixPath) -> PurePosixPath | None:
    """The file or folder of the system that a path is or lies in."""
    for i, part in enumerate(path.parts, 1):
        if part in SYSTEM or part.startswith("._"):
            return PurePosixPath(*path.parts[:i])
    return None
