-- AlterTable
ALTER TABLE "devices" ADD COLUMN     "fleet_ids" TEXT[] DEFAULT ARRAY[]::TEXT[];

-- CreateTable
CREATE TABLE "fleets" (
    "fleet_id" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "selector" JSONB,
    "created_by" TEXT NOT NULL,
    "version" INTEGER NOT NULL DEFAULT 1,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "fleets_pkey" PRIMARY KEY ("fleet_id")
);

-- CreateIndex
CREATE INDEX "fleets_tenant_id_created_at_idx" ON "fleets"("tenant_id", "created_at");

-- AddForeignKey
ALTER TABLE "fleets" ADD CONSTRAINT "fleets_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE;
