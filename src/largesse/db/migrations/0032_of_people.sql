-- Templates and collections that people made in the web application, or changed or removed there: a world file leaves them as they
-- are (docs/decisions/0041-templates-and-collections.md). Their keys are `app/` and a UUID; those of world files hold no slash.
ALTER TABLE templates
    ADD COLUMN of_people boolean NOT NULL DEFAULT false,
    ADD COLUMN removed_at timestamptz;
ALTER TABLE collections ADD COLUMN of_people boolean NOT NULL DEFAULT false;
