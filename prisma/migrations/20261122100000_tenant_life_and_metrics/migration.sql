-- AlterTable
ALTER TABLE "tenants" ADD COLUMN     "delete_after" TIMESTAMPTZ(3),
ADD COLUMN     "status_reason" TEXT,
ADD COLUMN     "status_since" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP;

-- CreateTable
CREATE TABLE "device_metrics" (
    "tenant_id" TEXT NOT NULL,
    "device_id" TEXT NOT NULL,
    "step_seconds" INTEGER NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,
    "samples" INTEGER NOT NULL,
    "cpu_avg" REAL,
    "cpu_max" REAL,
    "memory_avg" REAL,
    "memory_max" REAL,
    "disk_avg" REAL,
    "disk_max" REAL,

    CONSTRAINT "device_metrics_pkey" PRIMARY KEY ("tenant_id","device_id","step_seconds","at")
);

-- CreateTable
CREATE TABLE "tenant_metrics" (
    "tenant_id" TEXT NOT NULL,
    "step_seconds" INTEGER NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,
    "samples" INTEGER NOT NULL DEFAULT 0,
    "devices" INTEGER NOT NULL DEFAULT 0,
    "events" INTEGER NOT NULL DEFAULT 0,
    "cpu_avg" REAL,
    "cpu_max" REAL,
    "memory_avg" REAL,
    "memory_max" REAL,
    "disk_avg" REAL,
    "disk_max" REAL,

    CONSTRAINT "tenant_metrics_pkey" PRIMARY KEY ("tenant_id","step_seconds","at")
);

-- CreateTable
CREATE TABLE "metric_progress" (
    "step_seconds" INTEGER NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,
    "after_device" TEXT,

    CONSTRAINT "metric_progress_pkey" PRIMARY KEY ("step_seconds")
);

-- CreateTable
CREATE TABLE "tenant_settings" (
    "tenant_id" TEXT NOT NULL,
    "offline_after_seconds" INTEGER,
    "default_timezone" TEXT NOT NULL DEFAULT 'UTC',
    "allowed_return_hosts" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "version" INTEGER NOT NULL DEFAULT 1,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "tenant_settings_pkey" PRIMARY KEY ("tenant_id")
);

-- CreateTable
CREATE TABLE "slug_reservations" (
    "slug" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "slug_reservations_pkey" PRIMARY KEY ("slug")
);

-- CreateIndex
CREATE INDEX "device_metrics_step_seconds_at_idx" ON "device_metrics"("step_seconds", "at");

-- CreateIndex
CREATE INDEX "tenant_metrics_step_seconds_at_idx" ON "tenant_metrics"("step_seconds", "at");

-- CreateIndex
CREATE INDEX "slug_reservations_tenant_id_idx" ON "slug_reservations"("tenant_id");

-- CreateIndex
CREATE INDEX "tenants_delete_after_idx" ON "tenants"("delete_after") WHERE (delete_after IS NOT NULL);

-- AddForeignKey
ALTER TABLE "tenant_settings" ADD CONSTRAINT "tenant_settings_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "slug_reservations" ADD CONSTRAINT "slug_reservations_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE;
