-- Which people may use a funding account that is not open to all. It matters for roles that use assigned accounts only, such as members.
CREATE TABLE account_users (
    customer_id integer NOT NULL,
    account_id  integer NOT NULL,
    user_id     integer NOT NULL REFERENCES users,
    PRIMARY KEY (customer_id, account_id, user_id),
    CONSTRAINT account_users_account_fkey FOREIGN KEY (customer_id, account_id) REFERENCES accounts (customer_id, id)
);
CREATE INDEX account_users_user ON account_users (customer_id, user_id);
