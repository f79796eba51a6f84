"""What is doubtful about a configuration: a few lines at start, and all that can be looked at with `largesse check`.

`checks` goes through everything in order: `settings`, `machine` (data directory and open files), `master_key`, `database` with its
`roles`, and `mail_server`. Each says what it sees as a `Finding` of `finding`, and changes nothing. `starting` is what a service logs of it
when it starts.
"""
