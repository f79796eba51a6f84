"""The people of customers: how they sign in, what their role lets them do, and who invites whom.

`roles` is the table of what each role may. A `session` is a browser that signed in, and the `Person` in it; `writing` begins transactions that hold both; `posts` takes each
form of it once. `passwords` keeps passwords, `links` what may be used once, `allowances` how often anything may be tried;
`second_step` is what is asked for beside a password, `passkeys` one kind of it, as `webauthn` has them;
`confirming` is what the first mailed link ends; `signing_in` is the way in, from all of those. `managing` is what an administrator and an operator do with a customer's people.
`maintenance` says what of it is old, `resealing` brings second steps under the newest key. `known` is who signs in by which address, `secrets` what a browser or a link carries.
"""
