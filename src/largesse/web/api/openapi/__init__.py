"""The OpenAPI documents, built from what is served: `document` of the operations, `events` of what subscriptions are sent.

`problems` says what both kinds of readers learn of errors, `parameters` of what stands in a path or query; `parts` is what the documents
share, above all how a type becomes a schema.
"""
