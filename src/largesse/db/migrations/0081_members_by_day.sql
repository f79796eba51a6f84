-- By which automations find who joined a group on a day. The index alone answers, so that it is used for that, and only for that: what asks whether
-- a contact is in a group has the primary key.
DROP INDEX contact_members_joined;
CREATE INDEX contact_members_joined ON contact_members (customer_id, joined_on, group_id, contact_id);
