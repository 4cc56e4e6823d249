-- CreateIndex
CREATE INDEX "commands_canceling_cancel_requested_at_idx" ON "commands"("cancel_requested_at") WHERE (status = 'canceling'::text) AND (deadline_at IS NOT NULL);
