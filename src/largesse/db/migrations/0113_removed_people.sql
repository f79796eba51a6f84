-- Nobody who was removed comes back to what they had. A seed file switched people off without taking their sign-in and their accounts, as the
-- page People does, and an invitation gave them back.
UPDATE users SET person_id = NULL WHERE NOT is_active AND person_id IS NOT NULL;
DELETE FROM account_users a USING users u WHERE u.id = a.user_id AND NOT u.is_active;
