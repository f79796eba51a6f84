"""Budgets: what people, service accounts and funding accounts may spend in a month, a quarter or in all, and on one gift."""
