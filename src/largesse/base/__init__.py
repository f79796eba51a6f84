"""What every room stands on and none of it knows of.

What an installation is told: `settings` (environment variables), `database_address`, and `vault` (secrets at rest, under keys
derived from the master key).

What is said: `errors` is every error raised on purpose, an answer to a caller or a line to an operator; `decoding` reads JSON
bodies and query parameters with errors for people; `text`, `email` and `money` are the rules for what those may hold; `amounts` reads an amount as people type it; `i18n`
is the languages of pages and mail; `naming` keys made of names; `spreadsheets` what a cell may hold; `logs` the structured log, `exposition` the port of metrics.

What keeps a process fair and bounded: `clock` (which clock is for what), `batching` (what waits is handled together), `turns` (so
much at once, each key in its turn), `slices` (long computations give way), `patience` (who asks hears something in time),
`throttle` (how often somebody may do something), `files` (how many may be open). `client` and `hosts` say where a request comes
from and which names it may use.
"""
