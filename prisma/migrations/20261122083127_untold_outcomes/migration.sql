-- CreateTable
CREATE TABLE "untold_outcomes" (
    "command_id" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "attempts" INTEGER NOT NULL DEFAULT 0,
    "retry_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "untold_outcomes_pkey" PRIMARY KEY ("command_id")
);

-- CreateIndex
CREATE INDEX "untold_outcomes_retry_at_idx" ON "untold_outcomes"("retry_at");
