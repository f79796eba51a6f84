"""Orders: what may be asked for, placing it, and reading it back.

What is asked: `request` and its rules, with `recipients`, `texts`, `wrappings` and the `options` that may be left out; `findings` is
all that is wrong with it. `quoting` says what it would cost, and a caller keeps that as one of the `quotes`. `sending` leads to an
`order` that is handed to the `placer`, which places many in one transaction: `reading` reads and locks what they are decided on,
`rules` decides, `spending` holds service accounts to their
limits, `writing` writes, `writing_at_home` where customers are spread over nodes, both what `rows` makes of an order. `aside` is where orders wait whose accounts are locked elsewhere; `settling` finds out what
became of a COMMIT whose answer was lost.

Afterwards: an order is `kept` as a row, with what was `requested`; `record` is what is told of it, `records` reads one back,
`listing` lists a customer's, up to the `horizon`. `finding` says who may act on one, `cancelling` voids and refunds, `acts` keeps
who did what, `erasing` takes an address out of texts, `marks` is what of an order the ledger's marks cover. `reference` and `ids` are its two keys; `overview` is the operator's list, `metrics` are counted. Why so:
docs/decisions/0004-natural-batching.md and 0012-lock-queue.md.
"""
