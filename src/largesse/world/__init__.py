"""The world file: one YAML file that describes an installation (docs/seed-file.md).

Reading: `nodes` makes a tree of the text in which every value keeps its line and its letters; `values` says what each kind of
value may be, and `fields` reads one mapping by those rules and gathers the `mistakes`; `customers` and `gifts` read the objects,
and `beside` the pictures that stand beside the file;
`reading` puts a whole file together, as the frozen values of `document`.

Loading: `load` writes all of them in one transaction, each kind as rows of one table (`tables`), which `saving` brings in line;
`api_keys` makes the keys that are missing.
"""
