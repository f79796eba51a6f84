"""Answering to our own host names alone, where only the user of the machine may look."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from largesse.base.hosts import NOT_OURS, is_own_host
from largesse.web.kit.problems import Misdirected


def require_own_host(hosts: Collection[str], given: Sequence[str], connected_to: str = "") -> None:
    """Raises Misdirected unless the one Host header `given` names a host of ours; the rest as `is_own_host`."""
    if not is_own_host(hosts, given, connected_to):
        raise Misdirected(NOT_OURS)
