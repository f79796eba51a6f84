"""Mail to recipients and to people: writes it, sends it over SMTP, retries, captures it in test mode, and handles bounces and resends."""
