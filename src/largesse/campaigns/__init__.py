"""Campaigns: one link for a number of gifts until a date, for addresses of some domains or of a list."""
