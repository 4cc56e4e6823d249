-- CreateTable
CREATE TABLE "backup_policies" (
    "policy_id" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "enabled" BOOLEAN NOT NULL DEFAULT true,
    "schedule" TEXT NOT NULL,
    "timezone" TEXT NOT NULL,
    "jitter_seconds" INTEGER NOT NULL,
    "missed_run" TEXT NOT NULL,
    "target" JSONB NOT NULL,
    "type" TEXT NOT NULL,
    "destination_id" TEXT,
    "retention" JSONB NOT NULL,
    "consistency" TEXT NOT NULL,
    "timeout_seconds" INTEGER NOT NULL,
    "verify" JSONB,
    "before_updates" BOOLEAN NOT NULL DEFAULT false,
    "last_run_at" TIMESTAMPTZ(3),
    "last_status" TEXT,
    "next_run_at" TIMESTAMPTZ(3),
    "next_verify_at" TIMESTAMPTZ(3),
    "consecutive_failures" INTEGER NOT NULL DEFAULT 0,
    "created_by" TEXT NOT NULL,
    "version" INTEGER NOT NULL DEFAULT 1,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "backup_policies_pkey" PRIMARY KEY ("policy_id")
);

-- CreateTable
CREATE TABLE "backup_runs" (
    "run_id" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "policy_id" TEXT NOT NULL,
    "scheduled_for" TIMESTAMPTZ(3) NOT NULL,
    "started_at" TIMESTAMPTZ(3),
    "ended_at" TIMESTAMPTZ(3),
    "status" TEXT NOT NULL DEFAULT 'scheduled',
    "total" INTEGER NOT NULL DEFAULT 0,
    "completed" INTEGER NOT NULL DEFAULT 0,
    "partially_failed" INTEGER NOT NULL DEFAULT 0,
    "failed" INTEGER NOT NULL DEFAULT 0,
    "skipped" INTEGER NOT NULL DEFAULT 0,
    "reason" TEXT,
    "retained_at" TIMESTAMPTZ(3),
    "created_by" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "backup_runs_pkey" PRIMARY KEY ("run_id")
);

-- CreateTable
CREATE TABLE "backup_run_items" (
    "tenant_id" TEXT NOT NULL,
    "run_id" TEXT NOT NULL,
    "app_id" TEXT NOT NULL,
    "device_id" TEXT NOT NULL,
    "due_at" TIMESTAMPTZ(3) NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,
    "status" TEXT NOT NULL DEFAULT 'queued',
    "backup_id" TEXT,
    "reason" TEXT,

    CONSTRAINT "backup_run_items_pkey" PRIMARY KEY ("tenant_id","run_id","app_id")
);

-- CreateTable
CREATE TABLE "backup_destinations" (
    "destination_id" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "kind" TEXT NOT NULL,
    "settings" JSONB NOT NULL,
    "credentials" BYTEA,
    "is_default" BOOLEAN NOT NULL DEFAULT false,
    "last_checked_at" TIMESTAMPTZ(3),
    "last_error" JSONB,
    "created_by" TEXT NOT NULL,
    "version" INTEGER NOT NULL DEFAULT 1,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "backup_destinations_pkey" PRIMARY KEY ("destination_id")
);

-- CreateTable
CREATE TABLE "backup_repositories" (
    "repository_id" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "device_id" TEXT NOT NULL,
    "destination_id" TEXT NOT NULL,
    "password" BYTEA NOT NULL,
    "bytes" BIGINT NOT NULL DEFAULT 0,
    "last_deleted_at" TIMESTAMPTZ(3),
    "last_pruned_at" TIMESTAMPTZ(3),
    "prune_started_at" TIMESTAMPTZ(3),
    "prune_failed_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "backup_repositories_pkey" PRIMARY KEY ("repository_id")
);

-- CreateTable
CREATE TABLE "backups" (
    "backup_id" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "device_id" TEXT NOT NULL,
    "app_id" TEXT NOT NULL,
    "policy_id" TEXT,
    "destination_id" TEXT,
    "name" TEXT NOT NULL,
    "type" TEXT NOT NULL,
    "trigger" TEXT NOT NULL,
    "status" TEXT NOT NULL DEFAULT 'pending',
    "size" BIGINT,
    "added_bytes" BIGINT,
    "files" BIGINT,
    "checksum" TEXT,
    "progress" JSONB,
    "wanted_mode" TEXT NOT NULL DEFAULT 'template',
    "consistency" TEXT,
    "downtime_seconds" DOUBLE PRECISION,
    "content" JSONB,
    "spec" JSONB,
    "secrets" BYTEA,
    "started_at" TIMESTAMPTZ(3),
    "completed_at" TIMESTAMPTZ(3),
    "retain_until" TIMESTAMPTZ(3),
    "verification" JSONB NOT NULL,
    "failure" JSONB,
    "warnings" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "command_id" TEXT,
    "heard_at" TIMESTAMPTZ(3),
    "deleted_from" TEXT,
    "created_by" TEXT NOT NULL,
    "version" INTEGER NOT NULL DEFAULT 1,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "backups_pkey" PRIMARY KEY ("tenant_id","backup_id")
);

-- CreateTable
CREATE TABLE "restores" (
    "restore_id" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "device_id" TEXT NOT NULL,
    "backup_id" TEXT NOT NULL,
    "target_app_id" TEXT NOT NULL,
    "restore_type" TEXT NOT NULL,
    "paths" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "overwrite_existing" BOOLEAN NOT NULL,
    "dry_run" BOOLEAN NOT NULL,
    "plan" JSONB,
    "safety_backup_id" TEXT,
    "status" TEXT NOT NULL DEFAULT 'pending',
    "progress" JSONB,
    "files" BIGINT,
    "bytes" BIGINT,
    "failure" JSONB,
    "started_at" TIMESTAMPTZ(3),
    "completed_at" TIMESTAMPTZ(3),
    "command_id" TEXT,
    "heard_at" TIMESTAMPTZ(3),
    "created_by" TEXT NOT NULL,
    "version" INTEGER NOT NULL DEFAULT 1,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "restores_pkey" PRIMARY KEY ("restore_id")
);

-- CreateTable
CREATE TABLE "volumes" (
    "tenant_id" TEXT NOT NULL,
    "device_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "driver" TEXT NOT NULL,
    "mountpoint" TEXT NOT NULL,
    "size" BIGINT,
    "size_state" TEXT NOT NULL,
    "files" BIGINT,
    "labels" JSONB NOT NULL DEFAULT '{}',
    "app_id" TEXT,
    "in_use" BOOLEAN NOT NULL DEFAULT false,
    "status" TEXT NOT NULL DEFAULT 'present',
    "command_id" TEXT,
    "first_seen_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "last_seen_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "volumes_pkey" PRIMARY KEY ("tenant_id","device_id","name")
);

-- CreateTable
CREATE TABLE "volume_scans" (
    "tenant_id" TEXT NOT NULL,
    "device_id" TEXT NOT NULL,
    "discovered_at" TIMESTAMPTZ(3),
    "ordered_at" TIMESTAMPTZ(3),
    "command_id" TEXT,

    CONSTRAINT "volume_scans_pkey" PRIMARY KEY ("tenant_id","device_id")
);

-- CreateIndex
CREATE INDEX "backup_policies_tenant_id_created_at_idx" ON "backup_policies"("tenant_id", "created_at");

-- CreateIndex
CREATE INDEX "backup_policies_tenant_id_destination_id_idx" ON "backup_policies"("tenant_id", "destination_id");

-- CreateIndex
CREATE INDEX "backup_policies_next_run_at_idx" ON "backup_policies"("next_run_at") WHERE (next_run_at IS NOT NULL);

-- CreateIndex
CREATE INDEX "backup_policies_next_verify_at_idx" ON "backup_policies"("next_verify_at") WHERE (next_verify_at IS NOT NULL);

-- CreateIndex
CREATE UNIQUE INDEX "backup_policies_tenant_id_policy_id_key" ON "backup_policies"("tenant_id", "policy_id");

-- CreateIndex
CREATE INDEX "backup_runs_unretained_idx" ON "backup_runs"("ended_at") WHERE (retained_at IS NULL);

-- CreateIndex
CREATE UNIQUE INDEX "backup_runs_tenant_id_run_id_key" ON "backup_runs"("tenant_id", "run_id");

-- CreateIndex
CREATE UNIQUE INDEX "backup_runs_tenant_id_policy_id_scheduled_for_key" ON "backup_runs"("tenant_id", "policy_id", "scheduled_for");

-- CreateIndex
CREATE INDEX "backup_run_items_tenant_id_device_id_idx" ON "backup_run_items"("tenant_id", "device_id");

-- CreateIndex
CREATE INDEX "backup_run_items_tenant_id_backup_id_idx" ON "backup_run_items"("tenant_id", "backup_id");

-- CreateIndex
CREATE INDEX "backup_run_items_due_at_idx" ON "backup_run_items"("due_at") WHERE (status = 'queued');

-- CreateIndex
CREATE INDEX "backup_run_items_started_idx" ON "backup_run_items"("tenant_id", "run_id") WHERE (status = 'started');

-- CreateIndex
CREATE INDEX "backup_destinations_tenant_id_created_at_idx" ON "backup_destinations"("tenant_id", "created_at");

-- CreateIndex
CREATE UNIQUE INDEX "backup_destinations_tenant_id_destination_id_key" ON "backup_destinations"("tenant_id", "destination_id");

-- CreateIndex
CREATE UNIQUE INDEX "backup_destinations_default_key" ON "backup_destinations"("tenant_id") WHERE ("is_default" = true);

-- CreateIndex
CREATE INDEX "backup_repositories_tenant_id_device_id_idx" ON "backup_repositories"("tenant_id", "device_id");

-- CreateIndex
CREATE INDEX "backup_repositories_last_deleted_at_idx" ON "backup_repositories"("last_deleted_at") WHERE (last_deleted_at IS NOT NULL);

-- CreateIndex
CREATE UNIQUE INDEX "backup_repositories_tenant_id_repository_id_key" ON "backup_repositories"("tenant_id", "repository_id");

-- CreateIndex
CREATE UNIQUE INDEX "backup_repositories_tenant_id_destination_id_device_id_key" ON "backup_repositories"("tenant_id", "destination_id", "device_id");

-- CreateIndex
CREATE INDEX "backups_tenant_id_created_at_idx" ON "backups"("tenant_id", "created_at");

-- CreateIndex
CREATE INDEX "backups_tenant_id_app_id_created_at_idx" ON "backups"("tenant_id", "app_id", "created_at");

-- CreateIndex
CREATE INDEX "backups_tenant_id_device_id_idx" ON "backups"("tenant_id", "device_id");

-- CreateIndex
CREATE INDEX "backups_tenant_id_destination_id_idx" ON "backups"("tenant_id", "destination_id");

-- CreateIndex
CREATE INDEX "backups_tenant_id_policy_id_idx" ON "backups"("tenant_id", "policy_id");

-- CreateIndex
CREATE INDEX "backups_tenant_id_command_id_idx" ON "backups"("tenant_id", "command_id");

-- CreateIndex
CREATE INDEX "backups_heard_at_idx" ON "backups"("heard_at") WHERE (heard_at IS NOT NULL);

-- CreateIndex
CREATE INDEX "restores_tenant_id_created_at_idx" ON "restores"("tenant_id", "created_at");

-- CreateIndex
CREATE INDEX "restores_tenant_id_backup_id_idx" ON "restores"("tenant_id", "backup_id");

-- CreateIndex
CREATE INDEX "restores_tenant_id_target_app_id_idx" ON "restores"("tenant_id", "target_app_id");

-- CreateIndex
CREATE INDEX "restores_tenant_id_device_id_idx" ON "restores"("tenant_id", "device_id");

-- CreateIndex
CREATE INDEX "restores_tenant_id_safety_backup_id_idx" ON "restores"("tenant_id", "safety_backup_id");

-- CreateIndex
CREATE INDEX "restores_tenant_id_command_id_idx" ON "restores"("tenant_id", "command_id");

-- CreateIndex
CREATE INDEX "restores_heard_at_idx" ON "restores"("heard_at") WHERE (heard_at IS NOT NULL);

-- CreateIndex
CREATE UNIQUE INDEX "restores_tenant_id_restore_id_key" ON "restores"("tenant_id", "restore_id");

-- CreateIndex
CREATE INDEX "volumes_tenant_id_name_idx" ON "volumes"("tenant_id", "name");

-- CreateIndex
CREATE INDEX "volume_scans_ordered_at_idx" ON "volume_scans"("ordered_at");

-- AddForeignKey
ALTER TABLE "backup_policies" ADD CONSTRAINT "backup_policies_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "backup_policies" ADD CONSTRAINT "backup_policies_tenant_id_destination_id_fkey" FOREIGN KEY ("tenant_id", "destination_id") REFERENCES "backup_destinations"("tenant_id", "destination_id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "backup_runs" ADD CONSTRAINT "backup_runs_tenant_id_policy_id_fkey" FOREIGN KEY ("tenant_id", "policy_id") REFERENCES "backup_policies"("tenant_id", "policy_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "backup_run_items" ADD CONSTRAINT "backup_run_items_tenant_id_run_id_fkey" FOREIGN KEY ("tenant_id", "run_id") REFERENCES "backup_runs"("tenant_id", "run_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "backup_run_items" ADD CONSTRAINT "backup_run_items_tenant_id_device_id_fkey" FOREIGN KEY ("tenant_id", "device_id") REFERENCES "devices"("tenant_id", "device_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "backup_destinations" ADD CONSTRAINT "backup_destinations_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "backup_repositories" ADD CONSTRAINT "backup_repositories_tenant_id_device_id_fkey" FOREIGN KEY ("tenant_id", "device_id") REFERENCES "devices"("tenant_id", "device_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "backup_repositories" ADD CONSTRAINT "backup_repositories_tenant_id_destination_id_fkey" FOREIGN KEY ("tenant_id", "destination_id") REFERENCES "backup_destinations"("tenant_id", "destination_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "backups" ADD CONSTRAINT "backups_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "backups" ADD CONSTRAINT "backups_tenant_id_device_id_fkey" FOREIGN KEY ("tenant_id", "device_id") REFERENCES "devices"("tenant_id", "device_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "backups" ADD CONSTRAINT "backups_tenant_id_destination_id_fkey" FOREIGN KEY ("tenant_id", "destination_id") REFERENCES "backup_destinations"("tenant_id", "destination_id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "restores" ADD CONSTRAINT "restores_tenant_id_device_id_fkey" FOREIGN KEY ("tenant_id", "device_id") REFERENCES "devices"("tenant_id", "device_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "restores" ADD CONSTRAINT "restores_tenant_id_backup_id_fkey" FOREIGN KEY ("tenant_id", "backup_id") REFERENCES "backups"("tenant_id", "backup_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "volumes" ADD CONSTRAINT "volumes_tenant_id_device_id_fkey" FOREIGN KEY ("tenant_id", "device_id") REFERENCES "devices"("tenant_id", "device_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "volume_scans" ADD CONSTRAINT "volume_scans_tenant_id_device_id_fkey" FOREIGN KEY ("tenant_id", "device_id") REFERENCES "devices"("tenant_id", "device_id") ON DELETE CASCADE ON UPDATE CASCADE;
