-- DropIndex
DROP INDEX "enrollments_device_id_key";

-- CreateIndex
CREATE UNIQUE INDEX "deployments_tenant_id_deployment_id_key" ON "deployments"("tenant_id", "deployment_id");

-- CreateIndex
CREATE INDEX "devices_tenant_id_deployment_id_idx" ON "devices"("tenant_id", "deployment_id");

-- CreateIndex
CREATE UNIQUE INDEX "devices_tenant_id_device_id_key" ON "devices"("tenant_id", "device_id");

-- CreateIndex
CREATE INDEX "enrollment_tokens_tenant_id_deployment_id_idx" ON "enrollment_tokens"("tenant_id", "deployment_id");

-- CreateIndex
CREATE UNIQUE INDEX "enrollments_tenant_id_device_id_key" ON "enrollments"("tenant_id", "device_id");

-- CreateIndex
CREATE INDEX "pairings_tenant_id_device_id_idx" ON "pairings"("tenant_id", "device_id");

-- CreateIndex
CREATE INDEX "pairings_tenant_id_replaces_device_id_idx" ON "pairings"("tenant_id", "replaces_device_id");

-- CreateIndex
CREATE INDEX "stream_tickets_tenant_id_idx" ON "stream_tickets"("tenant_id");

-- By hand: until now a scope began with its tenant.
ALTER TABLE "idempotency_keys" DROP CONSTRAINT "idempotency_keys_pkey";
UPDATE "idempotency_keys" SET "scope" = substr("scope", length("tenant_id") + 2);
ALTER TABLE "idempotency_keys" ADD CONSTRAINT "idempotency_keys_pkey" PRIMARY KEY ("tenant_id", "scope");
