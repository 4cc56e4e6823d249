-- DropIndex
DROP INDEX "deployments_tenant_id_name_key";

-- AlterTable
ALTER TABLE "deployments" ADD COLUMN     "app_id" TEXT,
ADD COLUMN     "command_id" TEXT,
ADD COLUMN     "configuration" JSONB,
ADD COLUMN     "created_by" TEXT NOT NULL DEFAULT 'system',
ADD COLUMN     "current_revision" INTEGER,
ADD COLUMN     "deleted_at" TIMESTAMPTZ(3),
ADD COLUMN     "device_id" TEXT,
ADD COLUMN     "failure" JSONB,
ADD COLUMN     "revision" INTEGER NOT NULL DEFAULT 0,
ADD COLUMN     "template" TEXT,
ADD COLUMN     "template_version" TEXT,
ADD COLUMN     "timeline" JSON NOT NULL DEFAULT '[]',
ADD COLUMN     "timeout_seconds" INTEGER NOT NULL DEFAULT 900,
ADD COLUMN     "version" INTEGER NOT NULL DEFAULT 1;

-- CreateTable
CREATE TABLE "apps" (
    "app_id" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "device_id" TEXT NOT NULL,
    "deployment_id" TEXT,
    "app_type" TEXT NOT NULL,
    "template_version" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "status" TEXT NOT NULL DEFAULT 'pending',
    "config" JSONB NOT NULL,
    "spec" JSONB NOT NULL,
    "secrets" BYTEA,
    "secrets_version" INTEGER NOT NULL DEFAULT 0,
    "desired_state" TEXT NOT NULL DEFAULT 'running',
    "keep_volumes" BOOLEAN NOT NULL DEFAULT false,
    "revision" INTEGER NOT NULL DEFAULT 1,
    "last_revision" INTEGER NOT NULL DEFAULT 1,
    "desired_version" INTEGER NOT NULL,
    "reported" JSONB,
    "reported_version" INTEGER NOT NULL DEFAULT 0,
    "reported_at" TIMESTAMPTZ(3),
    "failure" JSONB,
    "command_id" TEXT,
    "cancel_asked" BOOLEAN NOT NULL DEFAULT false,
    "timeout_seconds" INTEGER NOT NULL DEFAULT 900,
    "timeline" JSON NOT NULL DEFAULT '[]',
    "created_by" TEXT NOT NULL,
    "version" INTEGER NOT NULL DEFAULT 1,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "removed_at" TIMESTAMPTZ(3),

    CONSTRAINT "apps_pkey" PRIMARY KEY ("app_id")
);

-- CreateTable
CREATE TABLE "app_snapshots" (
    "snapshot_id" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "app_id" TEXT NOT NULL,
    "revision" INTEGER NOT NULL,
    "app_type" TEXT NOT NULL,
    "template_version" TEXT NOT NULL,
    "config" JSONB NOT NULL,
    "spec" JSONB NOT NULL,
    "automatic" BOOLEAN NOT NULL,
    "metadata" JSONB NOT NULL DEFAULT '{}',
    "created_by" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "app_snapshots_pkey" PRIMARY KEY ("snapshot_id")
);

-- CreateTable
CREATE TABLE "desired_versions" (
    "tenant_id" TEXT NOT NULL,
    "device_id" TEXT NOT NULL,
    "version" INTEGER NOT NULL DEFAULT 1,

    CONSTRAINT "desired_versions_pkey" PRIMARY KEY ("tenant_id","device_id")
);

-- CreateTable
CREATE TABLE "deployment_revisions" (
    "tenant_id" TEXT NOT NULL,
    "deployment_id" TEXT NOT NULL,
    "revision" INTEGER NOT NULL,
    "template" TEXT NOT NULL,
    "template_version" TEXT NOT NULL,
    "configuration" JSONB NOT NULL,
    "spec" JSONB NOT NULL,
    "rolled_back_to" INTEGER,
    "created_by" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "deployment_revisions_pkey" PRIMARY KEY ("tenant_id","deployment_id","revision")
);

-- CreateIndex
CREATE INDEX "apps_tenant_id_created_at_idx" ON "apps"("tenant_id", "created_at");

-- CreateIndex
CREATE INDEX "apps_tenant_id_device_id_idx" ON "apps"("tenant_id", "device_id");

-- CreateIndex
CREATE INDEX "apps_tenant_id_deployment_id_idx" ON "apps"("tenant_id", "deployment_id");

-- CreateIndex
CREATE INDEX "apps_removed_at_idx" ON "apps"("removed_at") WHERE (removed_at IS NOT NULL);

-- CreateIndex
CREATE UNIQUE INDEX "apps_tenant_id_app_id_key" ON "apps"("tenant_id", "app_id");

-- CreateIndex
CREATE INDEX "app_snapshots_tenant_id_app_id_created_at_idx" ON "app_snapshots"("tenant_id", "app_id", "created_at");

-- CreateIndex
CREATE INDEX "deployments_tenant_id_created_at_idx" ON "deployments"("tenant_id", "created_at");

-- CreateIndex
CREATE INDEX "deployments_tenant_id_device_id_idx" ON "deployments"("tenant_id", "device_id");

-- CreateIndex
CREATE UNIQUE INDEX "deployments_living_tenant_name_key" ON "deployments"("tenant_id", "name") WHERE ("deleted_at" IS NULL);

-- AddForeignKey
ALTER TABLE "apps" ADD CONSTRAINT "apps_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "apps" ADD CONSTRAINT "apps_tenant_id_device_id_fkey" FOREIGN KEY ("tenant_id", "device_id") REFERENCES "devices"("tenant_id", "device_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "apps" ADD CONSTRAINT "apps_tenant_id_deployment_id_fkey" FOREIGN KEY ("tenant_id", "deployment_id") REFERENCES "deployments"("tenant_id", "deployment_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "app_snapshots" ADD CONSTRAINT "app_snapshots_tenant_id_app_id_fkey" FOREIGN KEY ("tenant_id", "app_id") REFERENCES "apps"("tenant_id", "app_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "desired_versions" ADD CONSTRAINT "desired_versions_tenant_id_device_id_fkey" FOREIGN KEY ("tenant_id", "device_id") REFERENCES "devices"("tenant_id", "device_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "deployments" ADD CONSTRAINT "deployments_tenant_id_device_id_fkey" FOREIGN KEY ("tenant_id", "device_id") REFERENCES "devices"("tenant_id", "device_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "deployment_revisions" ADD CONSTRAINT "deployment_revisions_tenant_id_deployment_id_fkey" FOREIGN KEY ("tenant_id", "deployment_id") REFERENCES "deployments"("tenant_id", "deployment_id") ON DELETE CASCADE ON UPDATE CASCADE;
