-- Accounts whose people get one mail when the balance falls below an amount. `is_low`: the balance is below it, and the mail was sent or
-- the person saw the balance when they set the amount.
CREATE TABLE account_watches (
    customer_id integer NOT NULL,
    account_id  integer NOT NULL,
    below_minor bigint NOT NULL CHECK (below_minor > 0),
    is_low      boolean NOT NULL,
    PRIMARY KEY (customer_id, account_id),
    CONSTRAINT account_watches_account_fkey FOREIGN KEY (customer_id, account_id) REFERENCES accounts (customer_id, id)
);

-- Who gets the mail.
CREATE TABLE account_watchers (
    customer_id integer NOT NULL,
    account_id  integer NOT NULL,
    user_id     integer NOT NULL REFERENCES users,
    PRIMARY KEY (customer_id, account_id, user_id),
    CONSTRAINT account_watchers_watch_fkey FOREIGN KEY (customer_id, account_id) REFERENCES account_watches (customer_id, account_id)
);

-- `low_balance` goes to a user, about an account. What it holds is read as the mail is sent.
ALTER TABLE people_mails
    ADD COLUMN account_id integer,
    DROP CONSTRAINT people_mails_kind_check,
    DROP CONSTRAINT people_mails_check,
    ADD CONSTRAINT people_mails_kind_check CHECK (kind IN ('invitation', 'reset', 'new_device', 'low_balance')),
    ADD CONSTRAINT people_mails_check CHECK (
        (kind IN ('invitation', 'low_balance')) = (user_id IS NOT NULL) AND (user_id IS NULL) = (person_id IS NOT NULL)
        AND (kind = 'low_balance') = (account_id IS NOT NULL));
