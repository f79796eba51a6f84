"""Contacts: the people a customer sends gifts to, their groups, and the fields that the customer defines for them."""
