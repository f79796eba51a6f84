"""Products and collections: what customers can send, for how much, and where.

Each process holds a snapshot of the catalogue in memory. The look-up of an API key also returns the catalogue's version, so a request
never answers from an old snapshot.
"""
