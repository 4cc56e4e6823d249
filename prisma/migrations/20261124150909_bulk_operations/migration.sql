-- CreateTable
CREATE TABLE "bulk_operations" (
    "operation_id" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "operation" TEXT NOT NULL,
    "name" TEXT,
    "target" JSONB NOT NULL,
    "params" JSONB NOT NULL,
    "await" TEXT NOT NULL DEFAULT 'ended',
    "max_parallel" INTEGER NOT NULL,
    "failure_threshold" JSONB,
    "per_minute" INTEGER,
    "status" TEXT NOT NULL,
    "status_reason" TEXT,
    "next_item" INTEGER NOT NULL DEFAULT 1,
    "frozen_to" TEXT,
    "retry_codes" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "total" INTEGER NOT NULL DEFAULT 0,
    "pending" INTEGER NOT NULL DEFAULT 0,
    "running" INTEGER NOT NULL DEFAULT 0,
    "succeeded" INTEGER NOT NULL DEFAULT 0,
    "failed" INTEGER NOT NULL DEFAULT 0,
    "skipped" INTEGER NOT NULL DEFAULT 0,
    "cancelled" INTEGER NOT NULL DEFAULT 0,
    "start_at" TIMESTAMPTZ(3),
    "expires_at" TIMESTAMPTZ(3) NOT NULL,
    "retry_of" TEXT,
    "created_by" TEXT NOT NULL,
    "started_at" TIMESTAMPTZ(3),
    "completed_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "bulk_operations_pkey" PRIMARY KEY ("operation_id")
);

-- CreateTable
CREATE TABLE "bulk_items" (
    "tenant_id" TEXT NOT NULL,
    "operation_id" TEXT NOT NULL,
    "n" INTEGER NOT NULL,
    "target_id" TEXT NOT NULL,
    "status" TEXT NOT NULL DEFAULT 'pending',
    "code" TEXT,
    "message" TEXT,
    "attempt" SMALLINT NOT NULL DEFAULT 0,
    "command_id" TEXT,
    "finished_at" TIMESTAMPTZ(3),

    CONSTRAINT "bulk_items_pkey" PRIMARY KEY ("tenant_id","operation_id","n")
);

-- CreateTable
CREATE TABLE "bulk_parts" (
    "tenant_id" TEXT NOT NULL,
    "operation_id" TEXT NOT NULL,
    "part" INTEGER NOT NULL,
    "sha256" BYTEA NOT NULL,
    "added" INTEGER NOT NULL,

    CONSTRAINT "bulk_parts_pkey" PRIMARY KEY ("tenant_id","operation_id","part")
);

-- CreateIndex
CREATE INDEX "bulk_operations_tenant_id_created_at_idx" ON "bulk_operations"("tenant_id", "created_at");

-- CreateIndex
CREATE INDEX "bulk_operations_completed_at_idx" ON "bulk_operations"("completed_at");

-- CreateIndex
CREATE UNIQUE INDEX "bulk_operations_tenant_id_operation_id_key" ON "bulk_operations"("tenant_id", "operation_id");

-- CreateIndex
CREATE INDEX "bulk_items_tenant_id_operation_id_status_n_idx" ON "bulk_items"("tenant_id", "operation_id", "status", "n");

-- CreateIndex
CREATE UNIQUE INDEX "bulk_items_tenant_id_operation_id_target_id_key" ON "bulk_items"("tenant_id", "operation_id", "target_id");

-- AddForeignKey
ALTER TABLE "bulk_operations" ADD CONSTRAINT "bulk_operations_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "bulk_items" ADD CONSTRAINT "bulk_items_tenant_id_operation_id_fkey" FOREIGN KEY ("tenant_id", "operation_id") REFERENCES "bulk_operations"("tenant_id", "operation_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "bulk_parts" ADD CONSTRAINT "bulk_parts_tenant_id_operation_id_fkey" FOREIGN KEY ("tenant_id", "operation_id") REFERENCES "bulk_operations"("tenant_id", "operation_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- The counters add up, whatever writes them.
ALTER TABLE "bulk_operations" ADD CONSTRAINT "bulk_operations_counts_add_up"
    CHECK (total = pending + running + succeeded + failed + skipped + cancelled AND least(pending, running, succeeded, failed, skipped, cancelled) >= 0);
ALTER TABLE "bulk_items" ADD CONSTRAINT "bulk_items_status_known"
    CHECK (status IN ('pending', 'running', 'succeeded', 'failed', 'skipped', 'cancelled'));
