"""Budgets: what people, service accounts and funding accounts may spend in a month, a quarter or in total, and on one gift."""
