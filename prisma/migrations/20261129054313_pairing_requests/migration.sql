-- AlterTable
ALTER TABLE "enrollment_tokens" ADD COLUMN     "approval" TEXT NOT NULL DEFAULT 'none';

-- AlterTable
ALTER TABLE "pairings" ADD COLUMN     "shown_to" TEXT,
ADD COLUMN     "token_id" TEXT;

-- Safe because the table holds the pairings of eight days, which are few.
CREATE INDEX "pairings_shown_to_created_at_idx" ON "pairings"("shown_to", "created_at");

-- Safe because the table holds the pairings of eight days, which are few.
CREATE INDEX "pairings_token_id_idx" ON "pairings"("token_id");

-- AddForeignKey
ALTER TABLE "pairings" ADD CONSTRAINT "pairings_shown_to_fkey" FOREIGN KEY ("shown_to") REFERENCES "tenants"("tenant_id") ON DELETE SET NULL ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "pairings" ADD CONSTRAINT "pairings_token_id_fkey" FOREIGN KEY ("token_id") REFERENCES "enrollment_tokens"("token_id") ON DELETE SET NULL ON UPDATE CASCADE;
