"""Serves the product with one thing done otherwise: `python -m bench.variant PORT NAME`, for bench/experiments.py."""

import gc
import sys
from collections.abc import Callable

import uvicorn

from largesse.base.logs import configure_logs
from largesse.base.settings import load_settings
from largesse.main import build_app
from largesse.orders import reading
from largesse.serving import server_options


def as_it_is(*_: object) -> None:
    """Nothing."""


def unfrozen() -> None:
    """The collector walks what lives from start to stop again and again."""
    gc.freeze = as_it_is


def collected_often() -> None:
    """The collector starts as often as Python has it."""
    gc.set_threshold = as_it_is


def replanned() -> None:
    """The server decides by itself whether what a batch is decided on is planned anew each time."""
    reading.BEGIN = "BEGIN;"


VARIANTS: dict[str, Callable[[], None]] = {
    "as-it-is": as_it_is,
    "unfrozen": unfrozen,
    "collected-often": collected_often,
    "replanned": replanned,
}


def main() -> None:
    """Serves until told to stop."""
    port, name = int(sys.argv[1]), sys.argv[2]
    configure_logs("json")
    VARIANTS[name]()
    uvicorn.run(build_app(load_settings()), **server_options("127.0.0.1", port))


if __name__ == "__main__":
    main()
