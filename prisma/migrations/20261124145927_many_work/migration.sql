-- CreateTable
CREATE TABLE "many_work" (
    "tenant_id" TEXT NOT NULL,
    "record_id" TEXT NOT NULL,
    "kind" TEXT NOT NULL,
    "priority" SMALLINT NOT NULL,
    "engine" SMALLINT NOT NULL,
    "step_at" TIMESTAMPTZ(3) NOT NULL,
    "failures" INTEGER NOT NULL DEFAULT 0,
    "last_error" TEXT,

    CONSTRAINT "many_work_pkey" PRIMARY KEY ("tenant_id","record_id")
);

-- CreateTable
CREATE TABLE "many_turns" (
    "tenant_id" TEXT NOT NULL,
    "last_step_at" TIMESTAMPTZ(6) NOT NULL,

    CONSTRAINT "many_turns_pkey" PRIMARY KEY ("tenant_id")
);

-- CreateIndex
CREATE INDEX "many_work_step_at_idx" ON "many_work"("step_at");

-- AddForeignKey
ALTER TABLE "many_work" ADD CONSTRAINT "many_work_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "many_turns" ADD CONSTRAINT "many_turns_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE;
