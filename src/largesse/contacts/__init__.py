"""Contacts: the people whom a customer sends to, their groups, and the fields that the customer defines for them."""
