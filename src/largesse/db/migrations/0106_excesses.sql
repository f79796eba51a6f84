-- The budgets that a send exceeded when approval was requested: kind, minor units and name, such as `over:500:Team` and `per_gift:900:Team`.
ALTER TABLE approval_requests ADD COLUMN excesses text[] NOT NULL DEFAULT '{}';
