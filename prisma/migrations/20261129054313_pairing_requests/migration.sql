-- AlterTable
ALTER TABLE "enrollment_tokens" ADD COLUMN     "approval" TEXT NOT NULL DEFAULT 'none';

-- AlterTable
ALTER TABLE "pairings" ADD COLUMN     "shown_to" TEXT,
ADD COLUMN     "token_id" TEXT;

-- Safe because the table holds the pairings of eight days, which are few.
CREATE INDEX "pairings_shown_to_created_at_idx" ON "pairings"("shown_to", "created_at");

-- Safe because the table holds the pairings of eight days, which are few.
CREATE INDEX "pairings_token_id_idx" ON "pairings"("token_id");
