"""Connections of callers: how long each may take, how many there may be, and what is no HTTP at all.

`protocol` is one connection, uvicorn's with the limits of a request; `keeper` watches all of a process and ends those that wait
too long; `limit` says how many there may be, and `metrics` counts. Why so: docs/decisions/0018-connections.md.
"""
