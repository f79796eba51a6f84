"""Gifts: the pages that show what there is to send, and what a customer makes of it.

`routes`       their addresses
`browsing`     looking through the catalogue: what was searched for, in which country
`picking`      a gift that was picked and the amount for it, as a send and a template need them
`catalogue`    the page Catalogue, and one product
`collections`  the page Collections: the curated ones, and those of one's own; `making` is the form of one
`templates`    the page Templates; `saving` is the form of one, with what it will look like beside it
"""
