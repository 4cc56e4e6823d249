-- A claim without an answer belongs to a call whose effect was not committed with it.
DELETE FROM "idempotency_keys" WHERE "status" IS NULL OR "answer" IS NULL;

-- AlterTable
ALTER TABLE "idempotency_keys" DROP COLUMN "locked_until",
ALTER COLUMN "status" SET NOT NULL,
ALTER COLUMN "answer" SET NOT NULL;
