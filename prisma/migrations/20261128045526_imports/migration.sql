-- CreateTable
CREATE TABLE "imports" (
    "import_id" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "format" TEXT NOT NULL,
    "origin" TEXT NOT NULL,
    "mode" TEXT NOT NULL,
    "conflict" TEXT NOT NULL,
    "send_invites" BOOLEAN NOT NULL,
    "lenient" BOOLEAN NOT NULL,
    "status" TEXT NOT NULL,
    "status_reason" TEXT,
    "plan_hash" TEXT,
    "lines" INTEGER NOT NULL,
    "counts" JSONB NOT NULL,
    "succeeded" INTEGER NOT NULL DEFAULT 0,
    "failed" INTEGER NOT NULL DEFAULT 0,
    "next_line" INTEGER NOT NULL DEFAULT 1,
    "created_by" TEXT NOT NULL,
    "applied_by" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "ready_at" TIMESTAMPTZ(3),
    "completed_at" TIMESTAMPTZ(3),
    "expires_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "imports_pkey" PRIMARY KEY ("import_id")
);

-- CreateTable
CREATE TABLE "import_lines" (
    "tenant_id" TEXT NOT NULL,
    "import_id" TEXT NOT NULL,
    "n" INTEGER NOT NULL,
    "line" INTEGER NOT NULL,
    "kind" TEXT NOT NULL,
    "key" TEXT NOT NULL,
    "action" TEXT NOT NULL,
    "code" TEXT,
    "message" TEXT,
    "changes" JSONB NOT NULL DEFAULT '[]',
    "record_id" TEXT,
    "status" TEXT NOT NULL,
    "calls" BYTEA,

    CONSTRAINT "import_lines_pkey" PRIMARY KEY ("tenant_id","import_id","n")
);

-- CreateIndex
CREATE INDEX "imports_tenant_id_created_at_idx" ON "imports"("tenant_id", "created_at");

-- CreateIndex
CREATE INDEX "imports_created_at_idx" ON "imports"("created_at");

-- CreateIndex
CREATE UNIQUE INDEX "imports_tenant_id_import_id_key" ON "imports"("tenant_id", "import_id");

-- AddForeignKey
ALTER TABLE "imports" ADD CONSTRAINT "imports_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "import_lines" ADD CONSTRAINT "import_lines_tenant_id_import_id_fkey" FOREIGN KEY ("tenant_id", "import_id") REFERENCES "imports"("tenant_id", "import_id") ON DELETE CASCADE ON UPDATE CASCADE;
