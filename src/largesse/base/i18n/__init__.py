"""Languages of recipients and people: texts, amounts, dates, countries, and the choice of a language.

To add a language, add a line to `LANGUAGES` and a catalogue under `locale`. A test names the texts that a catalogue lacks.
"""
