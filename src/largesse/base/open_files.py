"""The limit of open files, including sockets, of this process."""

import resource


def allow_files(wanted: int) -> int:
    """Raises the limit of open files to `wanted`, or as far as the hard limit allows. Never lowers it.

    Returns how many may be open now, at most `wanted`.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return allowed
