"""Personal data of recipients: telling all that is held about one, and erasing it.

`finding` looks for a recipient by address; `exporting` tells what is held, `erasing` takes it out, and leaves a receipt;
`retention` has it go by itself. Each room erases from its own tables. What somebody wrote into free
text, a name in a message, say, nobody can find; an address there is found. Why so: docs/decisions/0033-personal-data.md.
"""
