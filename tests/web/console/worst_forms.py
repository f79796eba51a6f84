"""`python worst_forms.py ADDRESS`: posts the forms that cost most to read, all at once, again and again, until its input ends.

A process of its own, whose work nobody takes for the service's. The headers and the token come first, as a line of JSON.
"""

import json
import sys
import threading

import httpx

ROWS = [b"%41" * 2_600_000, b"%09" * 2_600_000, b"%2C" * 2_600_000, b"%ff" * 2_600_000, b"%22\r%0A" * 900_000]


def post(address: str, headers: dict[str, str], body: bytes, ends: threading.Event) -> None:
    """Says which statuses it got, once each."""
    seen = set()
    with httpx.Client(timeout=120) as client:
        while not ends.is_set():
            status = client.post(address, content=body, headers=headers).status_code
            if status not in seen:
                seen.add(status)
                print(status, flush=True)  # noqa: T201 - the test reads it


def main() -> None:
    """Posts until its input ends."""
    given, ends = json.loads(sys.stdin.readline()), threading.Event()
    bodies = [f"token={given['token']}&rows=".encode() + rows for rows in ROWS]
    threads = [threading.Thread(target=post, args=(sys.argv[1], given["headers"], body, ends)) for body in bodies]
    for thread in threads:
        thread.start()
    print("posting", flush=True)  # noqa: T201
    sys.stdin.read()
    ends.set()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
