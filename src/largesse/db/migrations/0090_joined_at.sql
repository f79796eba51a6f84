-- When a contact joined a group, so that an automation created on that day tells who joined before it. Earlier members have none.
ALTER TABLE contact_members ADD COLUMN joined_at timestamptz;
ALTER TABLE contact_members ALTER COLUMN joined_at SET DEFAULT clock_now();
