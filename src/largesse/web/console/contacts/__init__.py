"""Pages of contacts: the list, one contact, imports, groups and own fields."""
