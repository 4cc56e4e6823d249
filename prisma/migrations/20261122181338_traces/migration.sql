-- CreateTable
CREATE TABLE "trace_spans" (
    "tenant_id" TEXT NOT NULL,
    "trace_id" TEXT NOT NULL,
    "span_id" TEXT NOT NULL,
    "parent_span_id" TEXT,
    "source" TEXT NOT NULL,
    "service" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "kind" SMALLINT NOT NULL,
    "start_us" BIGINT NOT NULL,
    "duration_us" BIGINT NOT NULL,
    "status" SMALLINT NOT NULL,
    "status_message" TEXT,
    "device_id" TEXT,
    "command_id" TEXT,
    "attributes" JSONB NOT NULL,
    "resource" JSONB NOT NULL,
    "events" JSONB NOT NULL,
    "links" JSONB NOT NULL,

    CONSTRAINT "trace_spans_pkey" PRIMARY KEY ("tenant_id","trace_id","span_id")
);

-- CreateTable
CREATE TABLE "traces" (
    "tenant_id" TEXT NOT NULL,
    "trace_id" TEXT NOT NULL,
    "start_us" BIGINT NOT NULL,
    "end_us" BIGINT NOT NULL,
    "duration_us" BIGINT NOT NULL,
    "rooted" BOOLEAN NOT NULL,
    "root_us" BIGINT NOT NULL,
    "root_service" TEXT NOT NULL,
    "root_operation" TEXT NOT NULL,
    "span_count" INTEGER NOT NULL,
    "error_count" INTEGER NOT NULL,
    "services" TEXT[],
    "operations" TEXT[],
    "device_ids" TEXT[],
    "app_ids" TEXT[],
    "request_ids" TEXT[],
    "expires_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "traces_pkey" PRIMARY KEY ("tenant_id","trace_id")
);

-- CreateTable
CREATE TABLE "trace_operations" (
    "tenant_id" TEXT NOT NULL,
    "service" TEXT NOT NULL,
    "operation" TEXT NOT NULL,
    "last_seen_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "trace_operations_pkey" PRIMARY KEY ("tenant_id","service","operation")
);

-- CreateTable
CREATE TABLE "trace_usage" (
    "tenant_id" TEXT NOT NULL,
    "day" INTEGER NOT NULL,
    "spans" INTEGER NOT NULL DEFAULT 0,

    CONSTRAINT "trace_usage_pkey" PRIMARY KEY ("tenant_id","day")
);

-- CreateIndex
CREATE INDEX "traces_tenant_id_start_us_trace_id_idx" ON "traces"("tenant_id", "start_us", "trace_id");

-- CreateIndex
CREATE INDEX "traces_expires_at_idx" ON "traces"("expires_at");

-- AddForeignKey
ALTER TABLE "traces" ADD CONSTRAINT "traces_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "trace_operations" ADD CONSTRAINT "trace_operations_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "trace_usage" ADD CONSTRAINT "trace_usage_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE;
