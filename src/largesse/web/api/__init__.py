"""The API: operations and JSON shapes, and nothing else.

`shapes` is the JSON. `routes` has the operations, one file for each group of paths; `operation` is what declaring one means, `paging` what lists take.
`application` finds the operation of a request and has the answer sent; `reading` reads its key and query; `metrics` counts requests.
From the same table `openapi` builds the document, and beside it that of events. Why so:
docs/decisions/0002-starlette-and-an-operations-table.md.
"""
