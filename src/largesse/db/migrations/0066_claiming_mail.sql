-- Captured mail to an address of the test lab whose recipient claims the gift: until that is done, `claims` is true.
ALTER TABLE captured_mail ADD COLUMN claims boolean NOT NULL DEFAULT false;
CREATE INDEX captured_mail_claiming ON captured_mail (id) WHERE claims;
