-- DropIndex
DROP INDEX "devices_fingerprint_idx";

-- DropIndex
DROP INDEX "devices_living_fingerprint_key";

-- CreateIndex
CREATE UNIQUE INDEX "devices_living_tenant_fingerprint_key" ON "devices"("tenant_id", "fingerprint") WHERE ("deleted_at" IS NULL);
