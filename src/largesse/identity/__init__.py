"""Who calls: customers, service accounts, API keys, people.

`keys` looks up who calls on every request (`Authenticator`); `key_records` makes, narrows, replaces, lists and deletes keys; `secret` is what a key looks like;
`guessing` bounds wrong ones. `people` is a person who acts in the web application; `service_accounts` is what programs act as. A
`principal` is whom a request acts for; `standing` decides what a key may do at all, and locks it for what writes. `narrowing` is how
far keys and service accounts are narrowed, `limits` sets what one may order. `saving` writes
those of a world file; `customers` and `users` list an installation's customers and a customer's people.
"""
