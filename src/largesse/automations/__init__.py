"""Automations: gifts that are sent automatically on a day of a contact."""
