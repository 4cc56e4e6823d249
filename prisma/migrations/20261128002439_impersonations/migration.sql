-- DropIndex
DROP INDEX "stream_tickets_tenant_id_idx";

-- AlterTable
ALTER TABLE "stream_tickets" ADD COLUMN     "impersonation_id" TEXT;

-- CreateTable
CREATE TABLE "impersonations" (
    "impersonation_id" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "hash" BYTEA NOT NULL,
    "user_id" TEXT NOT NULL,
    "admin_id" TEXT NOT NULL,
    "reason" TEXT NOT NULL,
    "read_only" BOOLEAN NOT NULL,
    "started_at" TIMESTAMPTZ(3) NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,
    "ended_at" TIMESTAMPTZ(3),
    "ended_by" TEXT,

    CONSTRAINT "impersonations_pkey" PRIMARY KEY ("impersonation_id")
);

-- CreateIndex
-- Safe because a ticket lives for a minute, so there are few rows.
CREATE INDEX "stream_tickets_tenant_id_impersonation_id_idx" ON "stream_tickets"("tenant_id", "impersonation_id");

-- CreateIndex
CREATE UNIQUE INDEX "impersonations_hash_key" ON "impersonations"("hash");

-- CreateIndex
CREATE INDEX "impersonations_tenant_id_started_at_idx" ON "impersonations"("tenant_id", "started_at");

-- CreateIndex
CREATE INDEX "impersonations_ended_at_expires_at_idx" ON "impersonations"("ended_at", "expires_at");

-- CreateIndex
CREATE UNIQUE INDEX "impersonations_tenant_id_impersonation_id_key" ON "impersonations"("tenant_id", "impersonation_id");

-- AddForeignKey
ALTER TABLE "stream_tickets" ADD CONSTRAINT "stream_tickets_tenant_id_impersonation_id_fkey" FOREIGN KEY ("tenant_id", "impersonation_id") REFERENCES "impersonations"("tenant_id", "impersonation_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "impersonations" ADD CONSTRAINT "impersonations_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- Whatever asks for it, none lasts longer.
ALTER TABLE "impersonations" ADD CONSTRAINT "impersonations_bounded" CHECK ("expires_at" <= "started_at" + interval '60 minutes');
