"""Campaigns: one link by which visitors get gifts until a date. Addresses of some domains, or of a list, may take part."""
