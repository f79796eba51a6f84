"""Automations: gifts that are sent by themselves on a day of a contact."""
