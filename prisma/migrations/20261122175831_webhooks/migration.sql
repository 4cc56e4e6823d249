-- CreateTable
CREATE TABLE "webhooks" (
    "webhook_id" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "url" TEXT NOT NULL,
    "events" TEXT[],
    "description" TEXT NOT NULL DEFAULT '',
    "format" TEXT NOT NULL DEFAULT 'standard',
    "status" TEXT NOT NULL DEFAULT 'active',
    "disabled_reason" TEXT,
    "disabled_at" TIMESTAMPTZ(3),
    "secret" BYTEA NOT NULL,
    "secret_hint" TEXT NOT NULL,
    "previous_secret" BYTEA,
    "previous_secret_until" TIMESTAMPTZ(3),
    "headers" BYTEA,
    "header_names" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "max_per_second" INTEGER NOT NULL DEFAULT 10,
    "api_version" TEXT NOT NULL DEFAULT 'v1',
    "created_by" TEXT NOT NULL,
    "version" INTEGER NOT NULL DEFAULT 1,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "deleted_at" TIMESTAMPTZ(3),

    CONSTRAINT "webhooks_pkey" PRIMARY KEY ("webhook_id")
);

-- CreateTable
CREATE TABLE "webhook_endpoints" (
    "webhook_id" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "next_due_at" TIMESTAMPTZ(3),
    "epoch" BIGINT NOT NULL DEFAULT 0,
    "holder" TEXT,
    "leased_until" TIMESTAMPTZ(3),
    "fence" BIGINT NOT NULL DEFAULT 0,
    "consecutive_failures" INTEGER NOT NULL DEFAULT 0,
    "failing_since" TIMESTAMPTZ(3),
    "last_success_at" TIMESTAMPTZ(3),
    "last_failure_at" TIMESTAMPTZ(3),

    CONSTRAINT "webhook_endpoints_pkey" PRIMARY KEY ("webhook_id")
);

-- CreateTable
CREATE TABLE "webhook_deliveries" (
    "delivery_id" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "webhook_id" TEXT NOT NULL,
    "event_id" TEXT NOT NULL,
    "event_type" TEXT NOT NULL,
    "subject_id" TEXT NOT NULL,
    "position" BIGINT NOT NULL,
    "status" TEXT NOT NULL DEFAULT 'pending',
    "trigger" TEXT NOT NULL DEFAULT 'scheduled',
    "body" TEXT NOT NULL,
    "traceparent" TEXT,
    "tries" INTEGER NOT NULL DEFAULT 0,
    "attempt_count" INTEGER NOT NULL DEFAULT 0,
    "attempts" JSONB NOT NULL DEFAULT '[]',
    "next_attempt_at" TIMESTAMPTZ(3) DEFAULT CURRENT_TIMESTAMP,
    "holds_until" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "completed_at" TIMESTAMPTZ(3),

    CONSTRAINT "webhook_deliveries_pkey" PRIMARY KEY ("delivery_id")
);

-- CreateTable
CREATE TABLE "webhook_hours" (
    "tenant_id" TEXT NOT NULL,
    "webhook_id" TEXT NOT NULL,
    "hour" TIMESTAMPTZ(3) NOT NULL,
    "succeeded" INTEGER NOT NULL DEFAULT 0,
    "failed" INTEGER NOT NULL DEFAULT 0,

    CONSTRAINT "webhook_hours_pkey" PRIMARY KEY ("tenant_id","webhook_id","hour")
);

-- CreateIndex
CREATE INDEX "webhooks_tenant_id_created_at_idx" ON "webhooks"("tenant_id", "created_at");

-- CreateIndex
CREATE INDEX "webhooks_deleted_at_idx" ON "webhooks"("deleted_at") WHERE (deleted_at IS NOT NULL);

-- CreateIndex
CREATE UNIQUE INDEX "webhooks_tenant_id_webhook_id_key" ON "webhooks"("tenant_id", "webhook_id");

-- CreateIndex
CREATE INDEX "webhook_endpoints_next_due_at_idx" ON "webhook_endpoints"("next_due_at") WHERE (next_due_at IS NOT NULL);

-- CreateIndex
CREATE UNIQUE INDEX "webhook_endpoints_tenant_id_webhook_id_key" ON "webhook_endpoints"("tenant_id", "webhook_id");

-- CreateIndex
CREATE INDEX "webhook_deliveries_open_idx" ON "webhook_deliveries"("webhook_id", "position") WHERE (status IN ('pending', 'retrying'));

-- CreateIndex
CREATE INDEX "webhook_deliveries_next_idx" ON "webhook_deliveries"("webhook_id", "next_attempt_at") WHERE ((next_attempt_at IS NOT NULL) AND (status = 'retrying'::text));

-- CreateIndex
CREATE INDEX "webhook_deliveries_retrying_idx" ON "webhook_deliveries"("webhook_id", "subject_id") WHERE (status = 'retrying');

-- CreateIndex
CREATE UNIQUE INDEX "webhook_deliveries_tenant_id_webhook_id_event_id_key" ON "webhook_deliveries"("tenant_id", "webhook_id", "event_id");

-- CreateIndex
CREATE INDEX "webhook_hours_hour_idx" ON "webhook_hours"("hour");

-- AddForeignKey
ALTER TABLE "webhooks" ADD CONSTRAINT "webhooks_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "webhook_endpoints" ADD CONSTRAINT "webhook_endpoints_tenant_id_webhook_id_fkey" FOREIGN KEY ("tenant_id", "webhook_id") REFERENCES "webhooks"("tenant_id", "webhook_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "webhook_hours" ADD CONSTRAINT "webhook_hours_tenant_id_webhook_id_fkey" FOREIGN KEY ("tenant_id", "webhook_id") REFERENCES "webhooks"("tenant_id", "webhook_id") ON DELETE CASCADE ON UPDATE CASCADE;
