"""One code of an order, its line: issuing and sealing it, its states, and claiming it with the PIN.

`issuing` draws codes and seals them, `text` is how one is written; `writing` writes the lines of placed orders. `claiming` is what
a recipient's code and PIN lead to (`attempts` looks at one, `limits` says how often one may guess), `lines` finds a code's line,
`states` moves lines, `records` tells how those of an order stand; `marking` marks their moves for `verify`. `links` gives codes out. `resealing` brings what is sealed under the
newest master key, `erasing` takes out whose a line was. This room alone writes the tables of lines; what a claimed gift becomes is fulfilment's. Why so: docs/decisions/0007-codes-references-tokens.md and 0011-claiming.md.
"""
