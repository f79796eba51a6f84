"""The web application at `/app`, for the people of a customer. It works without JavaScript.

`routes` lists each page with the right that it needs. `guard` checks the session, the right and the form before a handler runs.
"""
