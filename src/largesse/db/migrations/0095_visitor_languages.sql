-- The language in which a visitor of a campaign asked for the code, for the mails about the gift. Earlier visitors have none.
ALTER TABLE campaign_people ADD COLUMN language text;
