"""Suppliers: vouchers that are bought from others' APIs when a gift is claimed."""
