-- CreateTable
CREATE TABLE "alert_rules" (
    "rule_id" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "metric" TEXT NOT NULL,
    "event_type" TEXT,
    "operator" TEXT NOT NULL,
    "threshold" DOUBLE PRECISION NOT NULL,
    "clear_threshold" DOUBLE PRECISION NOT NULL,
    "for_seconds" INTEGER NOT NULL,
    "clear_for_seconds" INTEGER NOT NULL,
    "window_seconds" INTEGER NOT NULL,
    "cooldown_seconds" INTEGER NOT NULL,
    "scope" JSONB,
    "severity" TEXT NOT NULL,
    "channel_ids" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "auto_resolve" BOOLEAN NOT NULL DEFAULT true,
    "enabled" BOOLEAN NOT NULL DEFAULT true,
    "created_by" TEXT NOT NULL,
    "version" INTEGER NOT NULL DEFAULT 1,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "alert_rules_pkey" PRIMARY KEY ("rule_id")
);

-- CreateTable
CREATE TABLE "alert_tenants" (
    "tenant_id" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "alert_tenants_pkey" PRIMARY KEY ("tenant_id")
);

-- CreateTable
CREATE TABLE "alert_states" (
    "tenant_id" TEXT NOT NULL,
    "rule_id" TEXT NOT NULL,
    "target_id" TEXT NOT NULL,
    "phase" TEXT NOT NULL,
    "since" TIMESTAMPTZ(3) NOT NULL,
    "alert_id" TEXT,
    "changes" INTEGER NOT NULL DEFAULT 0,
    "changes_since" TIMESTAMPTZ(3) NOT NULL,
    "flapping" BOOLEAN NOT NULL DEFAULT false,

    CONSTRAINT "alert_states_pkey" PRIMARY KEY ("tenant_id","rule_id","target_id")
);

-- CreateTable
CREATE TABLE "alerts" (
    "alert_id" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "rule_id" TEXT NOT NULL,
    "rule_name" TEXT NOT NULL,
    "type" TEXT NOT NULL,
    "severity" TEXT NOT NULL,
    "status" TEXT NOT NULL DEFAULT 'open',
    "flapping" BOOLEAN NOT NULL DEFAULT false,
    "silenced" BOOLEAN NOT NULL DEFAULT false,
    "target_id" TEXT NOT NULL,
    "value" DOUBLE PRECISION NOT NULL,
    "target_count" INTEGER NOT NULL DEFAULT 0,
    "active_count" INTEGER NOT NULL DEFAULT 0,
    "occurrences" INTEGER NOT NULL DEFAULT 1,
    "note" TEXT,
    "started_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "last_seen_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "acknowledged_at" TIMESTAMPTZ(3),
    "acknowledged_by" TEXT,
    "resolved_at" TIMESTAMPTZ(3),
    "resolved_by" TEXT,
    "snoozed_until" TIMESTAMPTZ(3),
    "notify_at" TIMESTAMPTZ(3),
    "notified_at" TIMESTAMPTZ(3),
    "version" INTEGER NOT NULL DEFAULT 1,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "alerts_pkey" PRIMARY KEY ("alert_id")
);

-- CreateTable
CREATE TABLE "alert_targets" (
    "tenant_id" TEXT NOT NULL,
    "alert_id" TEXT NOT NULL,
    "target_id" TEXT NOT NULL,
    "device_id" TEXT,
    "name" TEXT,
    "tags" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "value" DOUBLE PRECISION NOT NULL,
    "active" BOOLEAN NOT NULL DEFAULT true,
    "silenced" BOOLEAN NOT NULL DEFAULT false,
    "started_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "cleared_at" TIMESTAMPTZ(3),

    CONSTRAINT "alert_targets_pkey" PRIMARY KEY ("tenant_id","alert_id","target_id")
);

-- CreateTable
CREATE TABLE "alert_silences" (
    "silence_id" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "matchers" JSONB NOT NULL,
    "starts_at" TIMESTAMPTZ(3) NOT NULL,
    "ends_at" TIMESTAMPTZ(3) NOT NULL,
    "comment" TEXT NOT NULL,
    "created_by" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "alert_silences_pkey" PRIMARY KEY ("silence_id")
);

-- CreateTable
CREATE TABLE "alert_channels" (
    "channel_id" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "type" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "config" BYTEA NOT NULL,
    "address" TEXT NOT NULL,
    "enabled" BOOLEAN NOT NULL DEFAULT true,
    "is_default" BOOLEAN NOT NULL DEFAULT true,
    "send_resolved" BOOLEAN NOT NULL,
    "last_sent_at" TIMESTAMPTZ(3),
    "last_error" TEXT,
    "last_error_at" TIMESTAMPTZ(3),
    "created_by" TEXT NOT NULL,
    "version" INTEGER NOT NULL DEFAULT 1,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "alert_channels_pkey" PRIMARY KEY ("channel_id")
);

-- CreateTable
CREATE TABLE "alert_notifications" (
    "notification_id" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "channel_id" TEXT NOT NULL,
    "alert_id" TEXT NOT NULL,
    "message" JSONB NOT NULL,
    "status" TEXT NOT NULL DEFAULT 'queued',
    "attempts" INTEGER NOT NULL DEFAULT 0,
    "next_attempt_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "last_error" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "sent_at" TIMESTAMPTZ(3),

    CONSTRAINT "alert_notifications_pkey" PRIMARY KEY ("notification_id")
);

-- CreateTable
CREATE TABLE "alert_signals" (
    "tenant_id" TEXT NOT NULL,
    "event_id" TEXT NOT NULL,
    "type" TEXT NOT NULL,
    "target_id" TEXT NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "alert_signals_pkey" PRIMARY KEY ("tenant_id","event_id")
);

-- CreateIndex
CREATE INDEX "alert_rules_tenant_id_created_at_idx" ON "alert_rules"("tenant_id", "created_at");

-- CreateIndex
CREATE INDEX "alert_rules_enabled_metric_idx" ON "alert_rules"("metric") WHERE ("enabled" = true);

-- CreateIndex
CREATE INDEX "alert_states_phase_since_idx" ON "alert_states"("phase", "since");

-- CreateIndex
CREATE INDEX "alerts_tenant_id_started_at_idx" ON "alerts"("tenant_id", "started_at");

-- CreateIndex
CREATE INDEX "alerts_unresolved_tenant_id_rule_id_idx" ON "alerts"("tenant_id", "rule_id") WHERE (resolved_at IS NULL);

-- CreateIndex
CREATE INDEX "alerts_notify_at_idx" ON "alerts"("notify_at") WHERE (notify_at IS NOT NULL);

-- CreateIndex
CREATE INDEX "alerts_resolved_at_idx" ON "alerts"("resolved_at") WHERE (resolved_at IS NOT NULL);

-- CreateIndex
CREATE UNIQUE INDEX "alerts_tenant_id_alert_id_key" ON "alerts"("tenant_id", "alert_id");

-- CreateIndex
CREATE INDEX "alert_targets_tenant_id_device_id_idx" ON "alert_targets"("tenant_id", "device_id");

-- CreateIndex
CREATE INDEX "alert_silences_tenant_id_created_at_idx" ON "alert_silences"("tenant_id", "created_at");

-- CreateIndex
CREATE INDEX "alert_silences_ends_at_idx" ON "alert_silences"("ends_at");

-- CreateIndex
CREATE INDEX "alert_channels_tenant_id_created_at_idx" ON "alert_channels"("tenant_id", "created_at");

-- CreateIndex
CREATE UNIQUE INDEX "alert_channels_tenant_id_channel_id_key" ON "alert_channels"("tenant_id", "channel_id");

-- CreateIndex
CREATE INDEX "alert_notifications_tenant_id_channel_id_sent_at_idx" ON "alert_notifications"("tenant_id", "channel_id", "sent_at");

-- CreateIndex
CREATE INDEX "alert_notifications_created_at_idx" ON "alert_notifications"("created_at");

-- CreateIndex
CREATE INDEX "alert_notifications_queued_next_attempt_at_idx" ON "alert_notifications"("next_attempt_at") WHERE ("status" = 'queued');

-- CreateIndex
CREATE INDEX "alert_signals_tenant_id_type_at_idx" ON "alert_signals"("tenant_id", "type", "at");

-- CreateIndex
CREATE INDEX "alert_signals_at_idx" ON "alert_signals"("at");

-- AddForeignKey
ALTER TABLE "alert_rules" ADD CONSTRAINT "alert_rules_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "alert_tenants" ADD CONSTRAINT "alert_tenants_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "alert_states" ADD CONSTRAINT "alert_states_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "alerts" ADD CONSTRAINT "alerts_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "alert_targets" ADD CONSTRAINT "alert_targets_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "alert_targets" ADD CONSTRAINT "alert_targets_tenant_id_alert_id_fkey" FOREIGN KEY ("tenant_id", "alert_id") REFERENCES "alerts"("tenant_id", "alert_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "alert_targets" ADD CONSTRAINT "alert_targets_tenant_id_device_id_fkey" FOREIGN KEY ("tenant_id", "device_id") REFERENCES "devices"("tenant_id", "device_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "alert_silences" ADD CONSTRAINT "alert_silences_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "alert_channels" ADD CONSTRAINT "alert_channels_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "alert_notifications" ADD CONSTRAINT "alert_notifications_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "alert_notifications" ADD CONSTRAINT "alert_notifications_tenant_id_channel_id_fkey" FOREIGN KEY ("tenant_id", "channel_id") REFERENCES "alert_channels"("tenant_id", "channel_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "alert_signals" ADD CONSTRAINT "alert_signals_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("tenant_id") ON DELETE CASCADE ON UPDATE CASCADE;
