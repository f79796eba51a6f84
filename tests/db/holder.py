"""A process that holds the embedded server of a data directory and does as its standard input says."""

import os
import sys
import threading
from pathlib import Path

from largesse.db.embedded import EmbeddedServer


def main() -> None:
    """Prints the address when the server is there, then one line after each command."""
    server = EmbeddedServer(Path(sys.argv[1]))
    server.acquire()
    print(server.url(), flush=True)  # noqa: T201 - how it answers
    for line in sys.stdin:
        match line.strip():
            case "ensure":
                threads = [threading.Thread(target=server.ensure_running) for _ in range(4)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            case "fork":
                if (child := os.fork()) == 0:
                    server.release()
                    os._exit(0)
                os.waitpid(child, 0)
            case "release":
                server.release()
                server.release()
        print(server.url(), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
