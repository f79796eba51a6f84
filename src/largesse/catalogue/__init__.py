"""The catalogue: products, collections, which amounts they can be sent for, and a snapshot of it all in memory.

Start with `products` and `collections`, what is sold as the database has it. `prices` is what a physical gift costs delivered;
`amounts` decides whether a gift can be sent for an amount in a country, and what that costs. `shapes` is the JSON of both.

Requests never read the catalogue from the database: `snapshot` holds all of one version, `cache` loads a new one when a request
has seen a newer version, `listing` has the items that lists and filters are made of, `recent` remembers the filtered lists
asked for last; `telling` is how callers are told, which those who speak to them say. `saving` writes what a world file describes,
`own` the collections that people make.

`pictures` are kept by their content, once `images` has looked what they are; `details` are the texts that people are told of a product.
"""
