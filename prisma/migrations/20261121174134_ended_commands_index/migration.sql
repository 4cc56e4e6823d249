-- CreateIndex
CREATE INDEX "commands_ended_finished_at_idx" ON "commands"("finished_at") WHERE (deadline_at IS NULL);
