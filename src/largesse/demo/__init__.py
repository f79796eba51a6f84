"""`largesse demo`: a demo world on the embedded database, an API key, and requests to paste.

`prepare` loads the world and draws the key, `welcome` is the text that the command prints.
"""
