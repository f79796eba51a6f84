"""Read models for lists, searches and reports. The worker updates them from the changes of orders; requests only read them."""
