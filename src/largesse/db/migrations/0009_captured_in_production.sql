-- Before mail was held, production without a mail server captured it and told it as sent, though it reached nobody. Such
-- messages count as given up from here on: they are told so, and `largesse mail requeue` sends them where that is wanted,
-- which an upgrade alone must not do. Their text stays in the captured mailbox for its 30 days. What the demo captures
-- after this is told as captured, as ever.
UPDATE messages SET state = 'exhausted', reason = 'no mail server was set'
WHERE state = 'captured' AND environment = 'production';
