-- Who made an API key in the web application (null: an operator, by command or world file); the key whose place it is to take, when
-- two of a service account hold beside each other for a while; the network address it was last used from.
ALTER TABLE api_keys
    ADD COLUMN made_by integer REFERENCES users,
    ADD COLUMN replaces integer REFERENCES api_keys,
    ADD COLUMN last_seen_address inet;
