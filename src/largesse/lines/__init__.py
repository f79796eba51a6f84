"""Lines: each is one code of an order. Codes and PINs, claim links, claiming, and the states of a line."""
