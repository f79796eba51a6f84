"""The command `largesse`, also as `python -m largesse`."""

import signal


def main() -> None:
    """Runs the command that was typed. Ctrl-C while the code is loaded ends the process without a traceback."""
    interrupt = signal.signal(signal.SIGINT, signal.SIG_DFL)
    from largesse.cli import main as run

    signal.signal(signal.SIGINT, interrupt)
    run()


if __name__ == "__main__":
    main()
