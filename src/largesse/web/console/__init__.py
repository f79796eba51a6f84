"""The web application at `/app`, for a customer's people. It works without script.

`routes` lists each page with the right it takes. `guard` checks session, right and form before a handler runs.
"""
