"""Read models: orders as people list, search and add them up. The worker keeps them; nothing of them is written as an order is placed.

standing.py    how an order stands, and what it adds to the sums: plain rules
words.py       by which words an order is found
reading.py     how changed orders stand now, and how they were last told
writing.py     the tables `report_…`, which nobody else writes
keeping.py     the worker's step: changes are taken in; recipients and texts are forgotten
rebuilding.py  `largesse rebuild-reports`
filters.py     which orders somebody wants to see
finding.py     the orders that pass a filter, page by page; searching.py what is typed into a search
listing.py     orders as a list shows them, and what it can be filtered by
earlier.py     who has had a gift of the kind before
templates.py   how often templates are used
summing.py     what they add up to, by day, month, and what they have in common

What has changed, `largesse.events` keeps (`order_changes`). What these tables say follows from the orders alone, `verify` holds them to
it, and they may be made anew at any time: docs/decisions/0032-read-models.md.
"""
