"""Branding: how a customer's mail and claim pages look. Logo, colour, own wrappings, sender, reply-to, subject and footer."""
