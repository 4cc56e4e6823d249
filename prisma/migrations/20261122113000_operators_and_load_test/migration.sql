-- AlterTable
ALTER TABLE "pairings" ADD COLUMN     "collect_until" TIMESTAMPTZ(3),
ADD COLUMN     "poll_token_hash" BYTEA;

-- AlterTable
ALTER TABLE "tenants" ADD COLUMN     "operator_notes" TEXT;

-- CreateTable
CREATE TABLE "feature_flags" (
    "key" TEXT NOT NULL,
    "enabled" BOOLEAN NOT NULL,
    "updated_by" TEXT NOT NULL,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "feature_flags_pkey" PRIMARY KEY ("key")
);

-- CreateTable
CREATE TABLE "feature_flag_overrides" (
    "tenant_id" TEXT NOT NULL,
    "key" TEXT NOT NULL,
    "enabled" BOOLEAN NOT NULL,

    CONSTRAINT "feature_flag_overrides_pkey" PRIMARY KEY ("tenant_id","key")
);

-- CreateTable
CREATE TABLE "job_runs" (
    "node_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "started_at" TIMESTAMPTZ(3) NOT NULL,
    "duration_ms" DOUBLE PRECISION NOT NULL,
    "runs" INTEGER NOT NULL,
    "failures" INTEGER NOT NULL,
    "failed_since" TIMESTAMPTZ(3),
    "error" TEXT,
    "written_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "job_runs_pkey" PRIMARY KEY ("node_id","name")
);

-- CreateTable
CREATE TABLE "load_tests" (
    "tenant_id" TEXT NOT NULL,
    "load_test_id" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "duration" INTEGER NOT NULL,
    "concurrency" INTEGER NOT NULL,
    "endpoints" TEXT[],
    "started_by" TEXT NOT NULL,
    "node_id" TEXT NOT NULL,
    "started_at" TIMESTAMPTZ(3) NOT NULL,
    "deadline_at" TIMESTAMPTZ(3),
    "cancel_asked_at" TIMESTAMPTZ(3),
    "finished_at" TIMESTAMPTZ(3),
    "results" JSONB,

    CONSTRAINT "load_tests_pkey" PRIMARY KEY ("tenant_id")
);

-- CreateIndex
CREATE INDEX "job_runs_written_at_idx" ON "job_runs"("written_at");

-- CreateIndex
CREATE INDEX "load_tests_deadline_at_idx" ON "load_tests"("deadline_at") WHERE (deadline_at IS NOT NULL);

-- AddForeignKey
ALTER TABLE "feature_flag_overrides" ADD CONSTRAINT "feature_flag_overrides_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "load_tests" ADD CONSTRAINT "load_tests_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- CreateIndex
CREATE INDEX "devices_fingerprint_idx" ON "devices"("fingerprint");
