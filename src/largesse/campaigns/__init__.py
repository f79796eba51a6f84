"""Campaigns: one link for so many gifts until a date, for addresses of given domains or of a list."""
