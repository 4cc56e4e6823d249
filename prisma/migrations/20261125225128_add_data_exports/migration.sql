-- CreateTable
CREATE TABLE "data_exports" (
    "export_id" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "scopes" TEXT[],
    "format" TEXT NOT NULL,
    "from" TIMESTAMPTZ(3),
    "to" TIMESTAMPTZ(3),
    "status" TEXT NOT NULL DEFAULT 'pending',
    "status_reason" TEXT,
    "attempt" INTEGER NOT NULL DEFAULT 0,
    "section" TEXT,
    "lines" INTEGER NOT NULL DEFAULT 0,
    "counts" JSONB NOT NULL DEFAULT '{}',
    "size_bytes" BIGINT NOT NULL DEFAULT 0,
    "sha256" TEXT,
    "download_count" INTEGER NOT NULL DEFAULT 0,
    "created_by" TEXT NOT NULL,
    "started_at" TIMESTAMPTZ(3),
    "completed_at" TIMESTAMPTZ(3),
    "expires_at" TIMESTAMPTZ(3),
    "deleted_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "data_exports_pkey" PRIMARY KEY ("export_id")
);

-- CreateTable
CREATE TABLE "data_export_chunks" (
    "tenant_id" TEXT NOT NULL,
    "export_id" TEXT NOT NULL,
    "part" INTEGER NOT NULL,
    "bytes" BYTEA NOT NULL,

    CONSTRAINT "data_export_chunks_pkey" PRIMARY KEY ("tenant_id","export_id","part")
);

-- CreateIndex
CREATE INDEX "data_exports_tenant_id_created_at_idx" ON "data_exports"("tenant_id", "created_at");

-- CreateIndex
CREATE INDEX "data_exports_status_created_at_idx" ON "data_exports"("status", "created_at");

-- CreateIndex
CREATE UNIQUE INDEX "data_exports_tenant_id_export_id_key" ON "data_exports"("tenant_id", "export_id");

-- AddForeignKey
ALTER TABLE "data_exports" ADD CONSTRAINT "data_exports_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "data_export_chunks" ADD CONSTRAINT "data_export_chunks_tenant_id_export_id_fkey" FOREIGN KEY ("tenant_id", "export_id") REFERENCES "data_exports"("tenant_id", "export_id") ON DELETE CASCADE ON UPDATE CASCADE;
