-- Customers, products and collections say who manages them: a seed file, or the office. A load changes only what the file manages, and the office what the
-- office manages. What is there came from a file, as far as anybody knows.
ALTER TABLE customers ADD COLUMN managed text NOT NULL DEFAULT 'file' CHECK (managed IN ('file', 'office'));
ALTER TABLE products ADD COLUMN managed text NOT NULL DEFAULT 'file' CHECK (managed IN ('file', 'office'));
ALTER TABLE collections ADD COLUMN managed text NOT NULL DEFAULT 'file' CHECK (managed IN ('file', 'office'));
ALTER TABLE customers ALTER COLUMN managed SET DEFAULT 'office';
ALTER TABLE products ALTER COLUMN managed SET DEFAULT 'office';
ALTER TABLE collections ALTER COLUMN managed SET DEFAULT 'office';
