-- Above which amount a send in the web application is confirmed first, by currency, in minor units, as JSON; null: none is.
ALTER TABLE customers ADD COLUMN confirm_above text;
