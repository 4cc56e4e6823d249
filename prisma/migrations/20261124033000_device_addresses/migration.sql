-- A constant default, so no row is rewritten; the former build leaves the column out.
ALTER TABLE "devices" ADD COLUMN     "addresses" JSONB NOT NULL DEFAULT '[]';
