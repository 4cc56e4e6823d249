-- DropIndex
DROP INDEX "outbox_events_tenant_id_position_idx";

-- AlterTable
ALTER TABLE "commands" ADD COLUMN     "ack_at" TIMESTAMPTZ(3);

-- CreateIndex
CREATE INDEX "commands_open_tenant_id_idx" ON "commands"("tenant_id") WHERE (status = ANY (ARRAY['queued'::text, 'sent'::text, 'acknowledged'::text, 'running'::text, 'canceling'::text]));

-- CreateIndex
CREATE UNIQUE INDEX "outbox_events_tenant_id_sequence_key" ON "outbox_events"("tenant_id", "sequence");
