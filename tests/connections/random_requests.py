"""Random requests, most of them right, and where they are cut."""

import json
import random

from largesse.customers.authenticator import new_secret

KEYS = {name: new_secret("production") for name in ("right", "other", "stale", "reads", "unknown")}
Pieces = list[tuple[bytes, bool]]  # bytes, and whether nothing comes for a while after them

BODIES = (b"", b"{", b"[]", b"\xff", b"null", b" " * 70_000 + b"{}")
NAMES = ("ada", "ada", "ada", "wait", "used", "bug", "stale", "x" * 21, "ö", 7)
METHODS = ("GET",) * 8 + ("POST",) * 16 + ("HEAD", "PUT")
PATHS = ("/show", "/recalls", "/recalls", "/health")
STRANGE_PATHS = (
    "/sho",
    "/show/",
    "/%73how",
    "//show",
    "/show#x",
    "http://localhost/show",
    "*",
    "/show;x",
    "/é",
    "/show\x00",
    "",
)
QUERIES = (
    "?page=2",
    "?page=3",
    "?page=4",
    "?page=5",
    "?page=0",
    "?page=x",
    "?pgae=1",
    "?page=1&page=2",
    "?",
    "?%ff",
    "?a=b#c",
)
VERSIONS = ("HTTP/1.0", "HTTP/2.0", "HTTP/1.2", "HTTP", "http/1.1")
TYPES = ("application/json", "application/json; charset=utf-8", "text/plain")
HEADERS = (
    "X-Request-Id: abc-1",
    "X-Request-Id: no good",
    "X-Forwarded-For: 203.0.113.9",
    "X-Forwarded-For: 203.0.113.9, 198.51.100.1",
    "X-Forwarded-For: x",
    "Connection: keep-alive",
    "Connection: close",
    "Connection: upgrade",
    "Upgrade: websocket",
    "Upgrade: h2c",
    "Accept: */*",
    "Content-Encoding: gzip",
    "Expect: 100-continue",
    "TE: trailers",
    "Host: elsewhere",
    "Authorization: Basic eDp5",
    f"X-Api-Key: {KEYS['other']}",
    "X-Long: " + "x" * 100,
    "X-Long: " + "x" * 9_000,
    "X-Long: " + "x" * 33_000,
    "X-Latin: \xe9",
)
# With these a request may end earlier or later than its body, or not be HTTP.
UNSOUND = (
    "Content-Length: 3",
    "Content-Length: -1",
    "Transfer-Encoding: chunked",
    "Broken",
    "Space : x",
    "X-Control: a\x01b",
    " folded: x",
)


def requests_in_pieces(chance: random.Random) -> tuple[int, Pieces]:
    """Some requests, one after the other, in pieces; and how many.

    What may be no HTTP comes at once, or slowly: whether it is read while an answer is under way is chance otherwise, and then it gets none.
    """
    requests = [_request(chance) for _ in range(chance.choice((1, 1, 1, 1, 2, 3)))]
    data = b"".join(request for request, _ in requests)
    may_hurry = len(requests) == 1 and requests[0][1]
    return len(requests), [(piece, not may_hurry or chance.randrange(2) == 0) for piece in _cut(chance, data)]


def _cut(chance: random.Random, data: bytes) -> list[bytes]:
    if chance.randrange(40) == 0 and len(data) < 2_000:
        return [bytes([byte]) for byte in data]
    count = chance.choice((1, 1, 2, 2, 3, 8))
    cuts = sorted(chance.choices(range(len(data) + 1), k=count - 1))
    if count == 2 and (at := data.find(b"\r\n\r\n")) > 0:
        cuts = [at + 4]  # as most clients send a body
    return [part for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True) if (part := data[begin:end])]


def _request(chance: random.Random) -> tuple[bytes, bool]:
    """A request, and whether it surely ends where its bytes do."""

    def rarely(odds: int) -> bool:
        return chance.randrange(odds) == 0

    method = chance.choice(METHODS)
    is_strange = rarely(12)
    path = chance.choice(STRANGE_PATHS if is_strange else PATHS) + (chance.choice(QUERIES) if rarely(4) else "")
    version = chance.choice(VERSIONS) if rarely(30) else "HTTP/1.1"
    lines = [f"{method} {path} {version}", "Host: localhost"]
    key = KEYS[chance.choice(("right", "right", "right", *KEYS))]
    lines.append(chance.choice((f"Authorization: Bearer {key}", f"X-Api-Key: {key}", f"authorization: bearer {key} ")))
    lines += [header for header in HEADERS if rarely(40)]
    unsound = [header for header in UNSOUND if rarely(60)]
    lines += unsound
    body, is_framed = b"", True
    if method in {"POST", "PUT"} or rarely(20):
        headers, body, is_framed = _body(chance)
        lines += headers
    head = lines[1:]
    chance.shuffle(head)
    if rarely(30):
        head.remove("Host: localhost")
    end = "\n" if rarely(60) else "\r\n"
    is_sound = is_framed and not (unsound or is_strange) and version == "HTTP/1.1" and end == "\r\n"
    return end.join([lines[0], *head, "", ""]).encode("latin-1") + body, is_sound


def _body(chance: random.Random) -> tuple[list[str], bytes, bool]:
    """Headers of a body, the body, and whether they surely say where it ends."""
    members = {"name": chance.choice(NAMES)}
    if chance.randrange(3) == 0:
        members |= {"count": chance.choice((1, None, "1")), "emial": 1}
    body = chance.choice(BODIES) if chance.randrange(12) == 0 else json.dumps(members).encode()
    headers = [f"Content-Type: {chance.choice(TYPES)}"] if chance.randrange(15) else []
    how = chance.randrange(40)
    if how == 0:
        return headers, body, not body
    if how == 1:
        return (
            [*headers, f"Content-Length: {chance.choice((0, len(body) + 1, '007', '1e3', 99999999999))}"],
            body,
            False,
        )
    if how < 7:
        cut = chance.randrange(len(body) + 1)
        chunks = [b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:cut], body[cut:]) if part]
        last = chance.choice((b"0\r\n\r\n", b"0\r\n\r\n", b"0\r\nX-Api-Key: x\r\n\r\n", b"zz\r\n"))
        return [*headers, "Transfer-Encoding: chunked"], b"".join([*chunks, last]), not last.startswith(b"zz")
    return [*headers, f"Content-Length: {len(body)}"], body, True
