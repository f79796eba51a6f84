"""Suppliers: buys vouchers from other companies' APIs when a gift is claimed."""
