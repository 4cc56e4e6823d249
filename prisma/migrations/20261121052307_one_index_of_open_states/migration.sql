-- DropIndex
DROP INDEX "commands_open_deadline_at_idx";

-- DropIndex
DROP INDEX "commands_open_tenant_id_idx";

-- DropIndex
DROP INDEX "commands_queued_available_at_idx";

-- CreateIndex
CREATE INDEX "commands_open_tenant_id_idx" ON "commands"("tenant_id") WHERE (deadline_at IS NOT NULL);

-- CreateIndex
CREATE INDEX "commands_open_deadline_at_idx" ON "commands"("deadline_at") WHERE (deadline_at IS NOT NULL);

-- CreateIndex
CREATE INDEX "commands_queued_available_at_idx" ON "commands"("available_at") WHERE (status = 'queued'::text) AND (deadline_at IS NOT NULL);
