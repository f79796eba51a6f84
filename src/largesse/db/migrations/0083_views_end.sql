-- Finds the views of customers' pages that ended long ago, which go: why somebody looked stays in the customer's audit log.
CREATE INDEX customer_views_ends ON customer_views (ends_at);
