"""Automations: gifts that are sent automatically on a contact's birthday, work anniversary, first day, or days after joining a group."""
