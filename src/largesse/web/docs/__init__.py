"""What is read about the API: the reference, the problems explained, the OpenAPI documents, the landing page.

`pages` has the routes. `reference` is the OpenAPI document cut up for reading: `shapes` its tables of members, `samples` the code to
copy. `templates` and `assets` make what is seen; the mailbox wears the same style. Why so:
docs/decisions/0008-api-reference.md.
"""
