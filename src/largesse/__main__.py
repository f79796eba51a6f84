"""The command `largesse`, also as `python -m largesse`."""

import gc
import signal

# New objects until a collection. While code is loaded, next to nothing is garbage, and with Python's own threshold of 700 collections take
# a sixth of the start.
_GC_THRESHOLD = 200_000


def main() -> None:
    """Runs the command that was typed. Ctrl-C while the code is loaded ends the process without a traceback."""
    gc.set_threshold(_GC_THRESHOLD)
    interrupt = signal.signal(signal.SIGINT, signal.SIG_DFL)
    from largesse.cli import main as run

    signal.signal(signal.SIGINT, interrupt)
    run()


if __name__ == "__main__":
    main()
