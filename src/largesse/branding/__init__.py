"""How a customer's mail and claim pages look: logo, colour, own wrappings, sender, reply-to, subject and footer."""
