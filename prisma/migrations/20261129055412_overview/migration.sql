-- AlterTable
ALTER TABLE "tenant_settings" ADD COLUMN     "setup_hidden" BOOLEAN NOT NULL DEFAULT false;

-- CreateTable
CREATE TABLE "overview_points" (
    "tenant_id" TEXT NOT NULL,
    "slot" SMALLINT NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,
    "online" INTEGER NOT NULL,
    "offline" INTEGER NOT NULL,
    "apps_in_error" INTEGER NOT NULL,
    "commands" INTEGER NOT NULL,
    "fresh_backups" INTEGER NOT NULL,
    "late_backups" INTEGER NOT NULL,

    CONSTRAINT "overview_points_pkey" PRIMARY KEY ("tenant_id","slot")
);

-- CreateIndex
CREATE INDEX "overview_points_at_idx" ON "overview_points"("at");

-- AddForeignKey
ALTER TABLE "overview_points" ADD CONSTRAINT "overview_points_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE;
