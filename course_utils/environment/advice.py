"""What a failed installation means, and what to do about it."""

import re

# Patterns in pip's log and what they mean; the first that matches is told.
ADVICE = (
    (
        r"No space left|Errno 28|not enough space|disk quota",
        "The disk is full. The course needs about 2 GB (on Linux about 6 GB without --cpu-torch).",
    ),
    (
        r"ProxyError|407 Proxy|Tunnel connection failed",
        "A proxy refused the connection. Ask for its address and set it:  HTTPS_PROXY=http://name:port",
    ),
    (
        r"CERTIFICATE_VERIFY_FAILED|SSLError",
        "The connection's certificate is not trusted, as happens in networks that inspect traffic.\n"
        "  Ask for their certificate file and name it:  PIP_CERT=/path/to/file.pem",
    ),
    (
        r"NewConnectionError|NameResolutionError|ConnectTimeout|getaddrinfo failed|Network is unreachable"
        r"|Max retries|Connection (refused|reset|aborted)|Read timed out",
        "The packages could not be downloaded: there is no network, or it blocks downloads.\n"
        "  The first start needs it once; afterwards the course runs offline.",
    ),
    (
        r"No matching distribution found for torch",
        "There is no such PyTorch for this Python: use a 64-bit Python that it supports, 3.12 for example.\n"
        "  Or pip did not find it where it looked; see PIP_INDEX_URL, PIP_NO_INDEX and `pip config list`.",
    ),
    (
        r"No matching distribution found",
        "pip did not find the package where it looked; see PIP_INDEX_URL, PIP_NO_INDEX and `pip config list`.",
    ),
    (
        r"Long Path",
        "Windows refuses long file names here. Move the course to a short folder such as C:\\course.",
    ),
    (
        r"Permission denied|Access is denied|WinError 5|WinError 32",
        "A file could not be written. Close JupyterLab and other programs that use this folder.",
    ),
)


KILLED = 137  # how a shell or a container reports the signal KILL


def explain(log, code=1):
    """What a failed installation means, from pip's log and its exit code."""
    if code < 0 or code == KILLED:
        return "pip was stopped from outside; often the memory was full. Close other programs first."
    for pattern, meaning in ADVICE:
        if re.search(pattern, log, re.I):
            return meaning
    return "The reason is in pip's messages above."
