-- What one gift of an automation cost when it was approved, in minor units: the approval ends when a gift costs more. Null if none was approved.
ALTER TABLE automations ADD COLUMN approved_minor bigint;
