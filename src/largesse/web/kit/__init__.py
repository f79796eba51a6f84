"""What everything that is reached over HTTP shares: one way for each thing.

`services`     what operations and pages work with; `largesse.main` makes it
`headers`      the head of a request: what matters of it, and its limit
`body`         its body, within limits of bytes and time, and `body_memory` of all that are read at once; `forms` what a form of ours
               posts, `uploads` with files
`query`        the parameters of a page's address, each of its declared kind
`client`       the network address it came from; `hosts` whether it came by a name of ours
`problems`     how each error is told over HTTP: the one table of status, title and explanation
`spelling`     how callers spell what rules name
`failing`      what becomes of an error that was raised: the one handler
`refused`      the line in the log of each request that was refused
`exchange`     what our connections offer beside ASGI's messages: the whole body, and an answer at once
`replies`      answers of programs, and how one is sent; `asgi` has the types
`pages`        pages for people: how one is answered, and what goes wrong shown as one
`compression`  what of answers is compressed
`templates`    the Jinja environment that they are rendered in, and QR codes; `assets` their styles, scripts and icons,
               `pictures` those of products
`sessions`     what a browser keeps so that it may come back
`security`     what browsers are told of a page; `styles` what of documents with styles of their own

The kit knows none of the rooms that use it.
"""
