"""Personal data of a recipient: exported, erased, and erased by itself after the retention period."""
