-- When the days on which an automation sends were changed last: days before that are not sent late. Null if they were never changed.
ALTER TABLE automations ADD COLUMN days_changed_at timestamptz;
