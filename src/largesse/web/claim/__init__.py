"""The recipient's pages: opening a gift, claiming it, choosing, and holding the voucher.

`pages`        the routes
`entering`     before a gift is claimed: a code typed in, a link followed, the claim
`gift`         the pages of a claimed gift, for the browser that has its `session`
`frame`        what every page stands in: language, headers, cookies, and how it tells what went wrong
`preview`      the page of a link that is not there yet, for who puts a gift together
`rendering`    templates to HTML; `themes` how a wrapped gift looks, `language` which one somebody reads
`addresses`    which fields an address has in a country, and what is wrong with one

The rules are in `largesse.lines.claiming` and `largesse.fulfilment.gifts`. Why so: docs/decisions/0011-claiming.md.
"""
