"""Drafts: what somebody puts together in the web application until it is sent.

Reading who it is for: a `sheet` is rows of cells, `text_sheet` reads one from CSV or pasted cells, `workbook` from an XLSX file, by
the program `workbook_process`, `mailboxes` a list of addresses as mail programs write it. `columns` guesses which column is what, `checking` holds each row to the rules of an order and tells
all that is wrong; `mending` puts rows right, `handing_out` makes the file of those that are wrong.

A `draft` is one send with all its steps; `keeping` has it in the database, for the person it is of alone, `erasing` drops those that hold an address. `desk` has it quoted and
placed, once; `price` is the quote line by line; `maintenance` says when one that nobody sends is old. Why so: docs/decisions/0028-drafts.md.
"""
