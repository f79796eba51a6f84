-- Earlier releases without a mail server captured production mail and reported it as sent, though nobody received it. These messages
-- count as given up from here on, and pages say so. An upgrade must not send them by itself: `largesse mail requeue` does.
-- Their text stays in the captured mailbox for its 30 days. Mail that the demo captures later is still shown as captured.
UPDATE messages SET state = 'exhausted', reason = 'no mail server was set'
WHERE state = 'captured' AND environment = 'production';
