"""Thank-you notes: what recipients write back after they claimed a gift."""
