-- CreateIndex
CREATE INDEX "commands_ended_tenant_id_command_id_idx" ON "commands"("tenant_id", "command_id") WHERE (deadline_at IS NULL);
