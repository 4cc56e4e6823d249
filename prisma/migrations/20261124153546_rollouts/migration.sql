-- AlterTable
ALTER TABLE "fleets" ADD COLUMN     "update_policy_id" TEXT;

-- CreateTable
CREATE TABLE "update_policies" (
    "update_policy_id" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "description" TEXT NOT NULL,
    "enabled" BOOLEAN NOT NULL,
    "settings" JSONB NOT NULL,
    "created_by" TEXT NOT NULL,
    "version" INTEGER NOT NULL DEFAULT 1,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "update_policies_pkey" PRIMARY KEY ("update_policy_id")
);

-- CreateTable
CREATE TABLE "rollouts" (
    "rollout_id" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "fleet_id" TEXT NOT NULL,
    "update_policy_id" TEXT,
    "subject" TEXT NOT NULL,
    "settings" JSONB NOT NULL,
    "target" JSONB NOT NULL,
    "content" JSONB,
    "conflicts" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "status_reason" TEXT,
    "reason_text" TEXT,
    "waiting_for" TEXT,
    "wait_until" TIMESTAMPTZ(3),
    "phase" INTEGER NOT NULL DEFAULT 0,
    "phases" JSONB NOT NULL DEFAULT '[]',
    "total" INTEGER NOT NULL DEFAULT 0,
    "pending" INTEGER NOT NULL DEFAULT 0,
    "late" INTEGER NOT NULL DEFAULT 0,
    "ordered" INTEGER NOT NULL DEFAULT 0,
    "verifying" INTEGER NOT NULL DEFAULT 0,
    "succeeded" INTEGER NOT NULL DEFAULT 0,
    "failed" INTEGER NOT NULL DEFAULT 0,
    "timed_out" INTEGER NOT NULL DEFAULT 0,
    "skipped" INTEGER NOT NULL DEFAULT 0,
    "aborted" INTEGER NOT NULL DEFAULT 0,
    "tolerated_failures" INTEGER NOT NULL DEFAULT 0,
    "tolerated_finished" INTEGER NOT NULL DEFAULT 0,
    "failures_told" INTEGER NOT NULL DEFAULT 0,
    "frozen_to" TEXT,
    "phase_approved" BOOLEAN NOT NULL DEFAULT false,
    "start_at" TIMESTAMPTZ(3),
    "started_at" TIMESTAMPTZ(3),
    "late_since" TIMESTAMPTZ(3),
    "completed_at" TIMESTAMPTZ(3),
    "approved_by" TEXT,
    "retry_of" TEXT,
    "rollback_of" TEXT,
    "follow_of" TEXT,
    "steps" JSON NOT NULL DEFAULT '[]',
    "created_by" TEXT NOT NULL,
    "version" INTEGER NOT NULL DEFAULT 1,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "rollouts_pkey" PRIMARY KEY ("rollout_id")
);

-- CreateTable
CREATE TABLE "rollout_devices" (
    "tenant_id" TEXT NOT NULL,
    "rollout_id" TEXT NOT NULL,
    "device_id" TEXT NOT NULL,
    "subject" TEXT NOT NULL,
    "position" INTEGER NOT NULL,
    "status" TEXT NOT NULL,
    "late" BOOLEAN NOT NULL DEFAULT false,
    "due" BOOLEAN NOT NULL DEFAULT false,
    "code" TEXT,
    "message" TEXT,
    "attempt" INTEGER NOT NULL DEFAULT 0,
    "command_id" TEXT,
    "app_id" TEXT,
    "before" JSONB,
    "after" JSONB,
    "revision" INTEGER,
    "ordered_at" TIMESTAMPTZ(3),
    "deadline_at" TIMESTAMPTZ(3),
    "finished_at" TIMESTAMPTZ(3),

    CONSTRAINT "rollout_devices_pkey" PRIMARY KEY ("tenant_id","rollout_id","device_id")
);

-- CreateIndex
CREATE INDEX "update_policies_tenant_id_created_at_idx" ON "update_policies"("tenant_id", "created_at");

-- CreateIndex
CREATE UNIQUE INDEX "update_policies_tenant_id_update_policy_id_key" ON "update_policies"("tenant_id", "update_policy_id");

-- CreateIndex
CREATE INDEX "rollouts_tenant_id_created_at_idx" ON "rollouts"("tenant_id", "created_at");

-- CreateIndex
CREATE INDEX "rollouts_tenant_id_fleet_id_idx" ON "rollouts"("tenant_id", "fleet_id");

-- CreateIndex
CREATE INDEX "rollouts_completed_at_idx" ON "rollouts"("completed_at");

-- CreateIndex
CREATE UNIQUE INDEX "rollouts_tenant_id_rollout_id_key" ON "rollouts"("tenant_id", "rollout_id");

-- CreateIndex
CREATE INDEX "rollout_devices_tenant_id_rollout_id_position_device_id_idx" ON "rollout_devices"("tenant_id", "rollout_id", "position", "device_id");

-- CreateIndex
CREATE INDEX "rollout_devices_tenant_id_device_id_idx" ON "rollout_devices"("tenant_id", "device_id");

-- CreateIndex
CREATE INDEX "rollout_devices_waiting_idx" ON "rollout_devices"("tenant_id", "rollout_id", "position") WHERE (status = 'pending') AND (NOT late);

-- CreateIndex
CREATE INDEX "rollout_devices_open_idx" ON "rollout_devices"("tenant_id", "rollout_id") WHERE (status IN ('ordered', 'verifying'));

-- CreateIndex
CREATE INDEX "rollout_devices_due_idx" ON "rollout_devices"("tenant_id", "rollout_id") WHERE (due);

-- CreateIndex
CREATE UNIQUE INDEX "rollout_devices_live_key" ON "rollout_devices"("tenant_id", "device_id", "subject") WHERE (status IN ('pending', 'ordered', 'verifying'));

-- CreateIndex
CREATE UNIQUE INDEX "rollout_devices_open_key" ON "rollout_devices"("tenant_id", "device_id") WHERE (status IN ('ordered', 'verifying'));

-- Safe because plans allow a tenant few fleets, so the index is built in a moment.
CREATE INDEX "fleets_tenant_id_update_policy_id_idx" ON "fleets"("tenant_id", "update_policy_id");

-- AddForeignKey
ALTER TABLE "fleets" ADD CONSTRAINT "fleets_tenant_id_update_policy_id_fkey" FOREIGN KEY ("tenant_id", "update_policy_id") REFERENCES "update_policies"("tenant_id", "update_policy_id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "update_policies" ADD CONSTRAINT "update_policies_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "rollouts" ADD CONSTRAINT "rollouts_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "rollout_devices" ADD CONSTRAINT "rollout_devices_tenant_id_rollout_id_fkey" FOREIGN KEY ("tenant_id", "rollout_id") REFERENCES "rollouts"("tenant_id", "rollout_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "rollout_devices" ADD CONSTRAINT "rollout_devices_tenant_id_device_id_fkey" FOREIGN KEY ("tenant_id", "device_id") REFERENCES "devices"("tenant_id", "device_id") ON DELETE CASCADE ON UPDATE CASCADE;
