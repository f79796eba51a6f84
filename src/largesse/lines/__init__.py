"""Lines: one code of an order each. Codes and PINs, claim links, claiming, and the states of a line."""
