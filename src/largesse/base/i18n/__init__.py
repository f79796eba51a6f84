"""The languages that recipients read, on pages and in mail: texts, amounts, dates, and which one it is to be.

`languages` is the list of them, with how each writes amounts, dates and countries, and which one a browser or a country wants.
`templates` makes the Jinja environment that speaks them. A language more is a line in `LANGUAGES` and a catalogue beside the
others in `locale`. The templates say English, in `{% trans %}` blocks; a catalogue says each of those texts, and a test names
what is missing.
"""
