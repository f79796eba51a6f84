"""Customers and who acts for them: service accounts and API keys, people with their roles, sign-in and sessions.

`access` checks and locks the rights of a key or a person inside a transaction, so that a removed right no longer counts.
"""
