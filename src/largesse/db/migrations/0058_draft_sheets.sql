-- A workbook's sheets are all stored, so that people can choose another one without handing the file in again.
ALTER TABLE draft_rows ADD COLUMN sheet integer NOT NULL DEFAULT 0;
ALTER TABLE draft_rows DROP CONSTRAINT draft_rows_pkey;
ALTER TABLE draft_rows ADD PRIMARY KEY (customer_id, environment, draft_id, sheet, number);
