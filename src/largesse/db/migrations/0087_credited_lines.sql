-- The back office counts the lines of bank files that no top-up was credited by.
CREATE INDEX top_ups_bank_line ON top_ups (bank_line) WHERE bank_line IS NOT NULL;
