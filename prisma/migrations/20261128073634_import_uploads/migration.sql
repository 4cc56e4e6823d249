-- AlterTable
ALTER TABLE "imports" ADD COLUMN "attempt" INTEGER NOT NULL DEFAULT 0,
ADD COLUMN "deletes_to_confirm" INTEGER,
ADD COLUMN "received_bytes" INTEGER,
ADD COLUMN "size_bytes" INTEGER;

-- AlterTable
ALTER TABLE "import_lines" ALTER COLUMN "line" DROP NOT NULL;

-- CreateTable
CREATE TABLE "import_parts" (
    "tenant_id" TEXT NOT NULL,
    "import_id" TEXT NOT NULL,
    "from_byte" INTEGER NOT NULL,
    "bytes" BYTEA NOT NULL,

    CONSTRAINT "import_parts_pkey" PRIMARY KEY ("tenant_id","import_id","from_byte")
);

-- CreateIndex
-- Safe because the table came with the same release, and holds no rows yet.
CREATE INDEX "imports_status_idx" ON "imports"("status");

-- AddForeignKey
ALTER TABLE "import_parts" ADD CONSTRAINT "import_parts_tenant_id_import_id_fkey" FOREIGN KEY ("tenant_id", "import_id") REFERENCES "imports"("tenant_id", "import_id") ON DELETE CASCADE ON UPDATE CASCADE;
