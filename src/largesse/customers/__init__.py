"""Customers and who acts for them: service accounts and API keys, people with their roles, sign-in and sessions.

`access` holds a key's or a person's rights inside a transaction, so that a right that was taken away no longer counts.
"""
