"""Templates: saved send presets, made outside the API.

World files make templates (`saving`), and people do in the web application (`keeping`); `GET /templates` lists them, and
`POST /send/template` reads one.
"""
