"""Limits of the HTTP server's connections: how many, how long each may idle, and what counts as malformed."""
