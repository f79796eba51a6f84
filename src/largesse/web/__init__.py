"""What is reached over HTTP: the API (`api`), what is read about it (`docs`), the pages of recipients (`claim`), the web
application of customers' people (`console`), and the captured mailbox (`mailbox`).

They do not know each other, but for `docs`, which tells of the API. What they share, one way for each thing, is the `kit`; what they
work with, its `Services`, made by `largesse.main`. Nothing below this room knows of HTTP.
"""
