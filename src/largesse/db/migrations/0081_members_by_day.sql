-- Automations use it to find who joined a group on a day. It has every column that they read. Whether a contact is in a group is a
-- question for the primary key.
DROP INDEX contact_members_joined;
CREATE INDEX contact_members_joined ON contact_members (customer_id, joined_on, group_id, contact_id);
