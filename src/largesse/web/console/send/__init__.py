"""Pages for sending a gift, one step each: gift, recipients, message, delivery, review, sent."""
