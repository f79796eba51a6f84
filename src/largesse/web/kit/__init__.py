"""What all web parts share: requests, bodies, forms, errors, security headers, sessions, assets and templates."""
