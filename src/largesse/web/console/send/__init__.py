"""Sending: the pages that lead from a gift to a placed order, each a plain form over a draft (`largesse.drafts`).

`routes`       their addresses
`opening`      the draft that a page is about, and the way through the pages
`gift`         first page: which gift, collection or template, and for how much
`recipients`   second: who gets it, typed, pasted or from a file; `mending` is what is done about rows that are wrong
`message`      third: wrapping, sender and message, with the mail and the claim page as they will be (`preview`),
               mailed to oneself as a test (`trying`)
`delivery`     fourth: when, and who pays
`review`       fifth: everything and the price, and the button that sends
`sent`         what became of it, the codes of a batch, and keeping it as a template
"""
