"""Locks the process it runs in: no network, no files but its own scratch folder, few of everything. Linux alone.

Imports nothing of the course. Namespaces and mounts need no privilege beyond user namespaces.
"""

import contextlib
import ctypes
import os
import signal
import sys
from pathlib import Path

NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000
NOSUID, NODEV, NOEXEC, READONLY, REMOUNT, BIND = 2, 4, 8, 1, 32, 4096
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 4, 24, 36, 38
NOBODY = 65534
CAPABILITY_VERSION = 0x20080522
SCRATCH = "/scratch"
SIZE = "size=64m,mode=1777"  # of each folder that can be written to; it lies in memory

_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def _checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def become_nobody() -> None:
    """Become an ordinary user: many limits do not hold for root."""
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    # A process that changed its user may not write its own files in /proc, unless it says so.
    _checked(_libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), "prctl")


def new_namespaces(flags: int) -> None:
    """Enter new namespaces of one's own, with the same user and group ids inside."""
    uid, gid = os.getuid(), os.getgid()
    _checked(_libc.unshare(NEWUSER | flags), "unshare")
    Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1", encoding="ascii")


def show_only(tree: str, at: str, hide: str) -> None:
    """Bind a folder to `at`, and put an empty one over the folder `hide` that holds it and its like."""
    new_namespaces(NEWNS)
    _checked(_libc.mount(tree.encode(), at.encode(), None, BIND, None), f"bind {tree}")
    _mount_empty(hide, NOSUID | NODEV | NOEXEC | READONLY, "size=4k,mode=555")


def _mount_empty(where: str, flags: int, options: str) -> None:
    _checked(_libc.mount(b"tmpfs", where.encode(), b"tmpfs", flags, options.encode()), f"tmpfs on {where}")


def own_folders() -> None:
    """Fresh folders to write to, nobody else's processes in /proc."""
    for where in (SCRATCH, "/dev/shm"):
        _mount_empty(where, NOSUID | NODEV, SIZE)
    flags = NOSUID | NODEV | NOEXEC
    if _libc.mount(b"proc", b"/proc", b"proc", flags, None) != 0:
        _mount_empty("/proc", flags | READONLY, "size=4k,mode=555")  # a nested namespace may not mount the real one


def die_with_parent() -> None:
    """Be killed when the process that forked this one ends, however it ends."""
    if _libc is not None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of processes whose own parent ended below this one."""
    if _libc is not None:
        _libc.prctl(PR_SET_CHILD_SUBREAPER, 1)


def give_up_privileges() -> None:
    """No capability is left, and no program that is started gets one."""
    _libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    for capability in range(64):
        if _libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break
    header, nothing = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()
    _checked(_libc.capset(header, nothing), "capset")


def limit_resources(limits: dict[str, int]) -> None:
    """Set limits by their names in `resource`; those a system does not have or does not allow are left out."""
    import resource

    for name, value in limits.items():
        number = getattr(resource, name, None)
        if number is None:
            continue
        hard = resource.getrlimit(number)[1]
        wanted = value if hard == resource.RLIM_INFINITY else min(value, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(number, (wanted, wanted))


def address_space() -> int:
    """The bytes of address space this process has, 0 where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0


def tasks_of_user() -> int:
    """How many processes and threads the user of this process has, which a limit counts as well; 0 if unknown."""
    count = 0
    for folder in Path("/proc").glob("[0-9]*/task"):
        with contextlib.suppress(OSError):
            if folder.stat().st_uid == os.getuid():
                count += sum(1 for _ in folder.iterdir())
    return count


def first_to_go() -> None:
    """When the machine runs out of memory, this process is ended before any other."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def kill_descendants() -> None:
    """End every process below this one that is still there; for a process that has called `adopt_orphans`."""
    for _ in range(100):
        try:
            children = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split()
        except OSError:
            return
        if not children:
            return
        for child in children:
            with contextlib.suppress(OSError):
                os.kill(int(child), signal.SIGKILL)
            with contextlib.suppress(OSError):
                os.waitpid(int(child), 0)
