"""HTTP load from wrk, and what wrk saw."""

import json
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bench.installation import Failed, Installation, Server

HOW_TO_GET_WRK = (
    "bench: `wrk` makes the HTTP load and is not on this machine. On Debian and Ubuntu: apt install wrk; with Homebrew: "
    "brew install wrk; its source: https://github.com/wg/wrk"
)
_REFERENCE_MARK = "REFERENCE-GOES-HERE!"  # as long as what takes its place

_DONE = """
function done(summary, latency, requests)
    local e = summary.errors
    io.write(string.format('RESULT {"requests": %d, "duration_us": %d, "errors": %d, "bytes": %d, ' ..
        '"p50_us": %d, "p90_us": %d, "p99_us": %d, "max_us": %d}\\n', summary.requests, summary.duration,
        e.connect + e.read + e.write + e.timeout + e.status, summary.bytes,
        latency:percentile(50), latency:percentile(90), latency:percentile(99), latency.max))
end
"""

# Requests made beforehand; only the caller's reference is new in each, which costs wrk next to nothing.
_ORDERS = """
local heads, tails, made = {}, {}, 0
for head, tail in io.open(REQUESTS):read("*a"):gmatch("([^%z]*)%z([^%z]*)%z") do
    heads[#heads + 1], tails[#tails + 1] = head, tail
end
function request()
    made = made + 1
    local at = made % #heads + 1
    return heads[at] .. string.format("%s-%011d", RUN, made) .. tails[at]
end
"""


class Load(msgspec.Struct):
    """What wrk measured: times in microseconds."""

    requests: int
    duration_us: int
    errors: int
    bytes: int
    p50_us: float
    p90_us: float
    p99_us: float
    max_us: float

    @property
    def rate(self) -> float:
        """Answers a second."""
        return self.requests / self.duration_us * 1e6


@dataclass(frozen=True, slots=True)
class Buyer:
    """Who orders: an API key and the funding account it pays from, None for one that pays on invoice."""

    key: str
    account_id: int | None


def require_wrk() -> None:
    """Raises SystemExit, saying how to get wrk, where it is missing."""
    if shutil.which("wrk") is None:
        raise SystemExit(HOW_TO_GET_WRK)


def buyers(made: Installation) -> list[Buyer]:
    """Every funding account with the key of its customer."""
    found = []
    for name, account_id in made.ids["funding_accounts"].items():
        customer = name.split("/")[-1].split("-")[1]
        found.append(Buyer(made.keys[f"key-{customer}"], account_id))
    return found


def order_body(made: Installation, buyer: Buyer) -> dict[str, object]:
    """An order of £10 for each of two recipients, with a reference of the caller's, as wrk sends it."""
    return {
        "productId": made.ids["products"]["coffee"],
        "value": 10,
        "recipients": [
            {"email": "ada.lovelace@example.com", "name": "Ada Lovelace"},
            {"email": "grace.hopper@example.com", "name": "Grace Hopper"},
        ],
        "fromName": "Acme People Team",
        "message": "Thank you for a wonderful year!",
        "accountId": buyer.account_id,
        "externalReference": _REFERENCE_MARK,
    }


def orders(
    made: Installation, server: Server, who: Sequence[Buyer], *, connections: int, seconds: float, every_ms: int = 0
) -> Load:
    """Orders of two recipients by each buyer in turn; every connection pauses `every_ms` between two."""
    pairs = b"".join(_request_around_reference(made, server, buyer) for buyer in who)
    run = secrets.token_hex(4)  # with a hyphen and 11 digits as long as _REFERENCE_MARK
    with tempfile.TemporaryDirectory(dir=made.folder) as folder:
        requests = Path(folder, "requests")
        requests.write_bytes(pairs)
        delay = f"function delay() return {every_ms} end\n" if every_ms else ""
        script = f'local REQUESTS, RUN = "{requests}", "{run}"\n{_ORDERS}{delay}{_DONE}'
        return _wrk(server.url, script, Path(folder), connections=connections, seconds=seconds)


def gets(made: Installation, server: Server, path: str, key: str | None, *, connections: int, seconds: float) -> Load:
    """GETs of one path."""
    header = f'wrk.headers["Authorization"] = "Bearer {key}"\n' if key else ""
    with tempfile.TemporaryDirectory(dir=made.folder) as folder:
        return _wrk(server.url + path, header + _DONE, Path(folder), connections=connections, seconds=seconds)


def _request_around_reference(made: Installation, server: Server, buyer: Buyer) -> bytes:
    """A request as its bytes before and after the caller's reference, each ended by a zero byte."""
    body = json.dumps(order_body(made, buyer), separators=(",", ":")).encode()
    head = (
        f"POST /send/gift HTTP/1.1\r\nHost: {server.url.removeprefix('http://')}\r\n"
        f"Authorization: Bearer {buyer.key}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    before, mark, after = (head.encode() + body).partition(_REFERENCE_MARK.encode())
    assert mark
    return before + b"\0" + after + b"\0"


def _wrk(url: str, script: str, folder: Path, *, connections: int, seconds: float) -> Load:
    require_wrk()
    path = folder / "load.lua"
    path.write_text(script)
    command = ["wrk", "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", "--timeout", "30s"]
    done = subprocess.run([*command, "-s", str(path), url], capture_output=True, text=True, check=False)
    marked = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if done.returncode != 0 or not marked:
        raise Failed(f"wrk: {done.stdout[-500:]}{done.stderr[-500:]}")
    load = msgspec.json.decode(marked[0].removeprefix("RESULT "), type=Load)
    if load.errors or not load.requests:
        raise Failed(f"wrk met {load.errors} errors in {load.requests} requests to {url}")
    return load
