"""The audit log: who did what to what, kept in the transaction of the act and never changed.

`acting` says who acts and keeps what they do: `Acting.record`, which takes one line wherever something is done. `acts` lists what is kept.
`listing` reads it for people. What an order is and who placed it stands in `orders`; what a recipient does is no act of the log.
"""
