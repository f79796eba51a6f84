"""The API. Each operation is declared once in `routes`; the document, validation and checks follow from it."""
