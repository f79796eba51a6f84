"""One order of 5,000 codes, with every code, PIN and claim link in the answer.

*How.* One `POST /send/gift` with `codeQuantity` 5000 after another, on one connection. The figure is the median time from the request
to the last byte of the answer. The reference is `COPY` of the rows that the product has just written (the order, 5,000 lines,
the ledger entries and the event) into the same tables with the same indexes in another database, in one transaction, from
text that is already in memory.

*What it means.* COPY is PostgreSQL's fastest way to insert rows. The product also draws, hashes and encrypts 5,000 codes, makes
5,000 claim tokens and writes half a megabyte of JSON.
"""

import http.client
import io
import json
import time
from statistics import median

from bench import load
from bench.installation import Failed, Installation, Server
from bench.results import Row, Sample
from bench.suite import Suite, at_most
from bench.world import one_account
from largesse.db.pool import Connection

CODES = 5_000
_WARM_UP = 2
# Identities are drawn anew; everything else is copied as it is.
_TABLES = {
    "orders": "*",
    "lines": "*",
    "entries": "customer_id, account_id, movement_id, kind, order_id, amount_minor, balance_minor, reference, created_at",
    "events": "order_id, customer_id, environment, event, body, created_at, fanned_out_at",
}


def run(suite: Suite) -> list[Row]:
    batches = max(1, round(suite.seconds * 2))
    with suite.installation("batch-5000", one_account()) as made, made.serve() as server:
        made.make_reference()
        # A run ahead of the reference, so that it always has batches that it has not copied yet.
        _post(made, server, max(_WARM_UP, batches))
        copies = _Copies(made)
        copies.run(_WARM_UP)
        _post(made, server, _WARM_UP)
        pairs = suite.in_turn(lambda: _post(made, server, batches), lambda: copies.run(batches))
    return [
        Row(
            "batch-5000",
            "ms",
            f"POST /send/gift, codeQuantity {CODES:,}",
            "COPY of the same rows into the same tables",
            at_most(2.5),
            pairs,
        )
    ]


def _post(made: Installation, server: Server, batches: int) -> Sample:
    buyer = load.buyers(made)[0]
    body = json.dumps(
        {"productId": made.ids["products"]["coffee"], "value": 10, "codeQuantity": CODES, "accountId": buyer.account_id}
    )
    headers = {"Authorization": f"Bearer {buyer.key}", "Content-Type": "application/json"}
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"))
    times_ms = []
    size = 0
    for _ in range(batches):
        began = time.perf_counter()
        connection.request("POST", "/send/gift", body, headers)
        answer = connection.getresponse()
        size = len(answer.read())
        times_ms.append((time.perf_counter() - began) * 1e3)
        if answer.status != 200:
            raise Failed(f"a batch was answered with {answer.status}")
    connection.close()
    return Sample(median(times_ms), {"max_ms": max(times_ms), "answer_bytes": size})


class _Copies:
    """Copies the product's batches, the oldest first, each once."""

    def __init__(self, made: Installation) -> None:
        self._made = made
        self._copied_id = 0

    def run(self, batches: int) -> Sample:
        texts = self._made.connected(lambda connection: self._export(connection, batches))
        times_ms = self._made.connected(lambda connection: _import(connection, texts), self._made.reference_url)
        return Sample(median(times_ms), {"max_ms": max(times_ms)})

    async def _export(self, connection: Connection, batches: int) -> list[dict[str, bytes]]:
        query = "SELECT id FROM orders WHERE id > $1 ORDER BY id LIMIT $2"
        orders = await connection.fetch(query, self._copied_id, batches)
        if len(orders) < batches:
            raise Failed("the product has not placed as many batches as are to be copied")
        texts = []
        for order in orders:
            text = {}
            for table, columns in _TABLES.items():
                key = "id" if table == "orders" else "order_id"
                output = io.BytesIO()
                rows = f"SELECT {columns} FROM {table} WHERE {key} = {order['id']}"
                await connection.copy_from_query(rows, output=output)
                text[table] = output.getvalue()
            texts.append(text)
        self._copied_id = orders[-1]["id"]
        return texts


async def _import(connection: Connection, texts: list[dict[str, bytes]]) -> list[float]:
    times_ms = []
    for text in texts:
        began = time.perf_counter()
        async with connection.transaction():
            for table, columns in _TABLES.items():
                named = None if columns == "*" else columns.split(", ")
                await connection.copy_to_table(table, source=io.BytesIO(text[table]), columns=named)
        times_ms.append((time.perf_counter() - began) * 1e3)
    return times_ms
