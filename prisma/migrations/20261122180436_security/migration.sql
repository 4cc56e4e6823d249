-- CreateTable
CREATE TABLE "security_events" (
    "event_id" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "type" TEXT NOT NULL,
    "severity" TEXT NOT NULL,
    "entity_type" TEXT NOT NULL,
    "entity_id" TEXT NOT NULL,
    "minute" TIMESTAMPTZ(3) NOT NULL,
    "first_at" TIMESTAMPTZ(3) NOT NULL,
    "last_at" TIMESTAMPTZ(3) NOT NULL,
    "count" INTEGER NOT NULL,
    "ip_address" TEXT,
    "reason" TEXT,
    "operation" TEXT,
    "pending" BOOLEAN NOT NULL DEFAULT true,

    CONSTRAINT "security_events_pkey" PRIMARY KEY ("event_id")
);

-- CreateTable
CREATE TABLE "security_alerts" (
    "alert_id" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "rule_id" TEXT NOT NULL,
    "type" TEXT NOT NULL,
    "severity" TEXT NOT NULL,
    "status" TEXT NOT NULL DEFAULT 'open',
    "entity_type" TEXT NOT NULL,
    "entity_id" TEXT NOT NULL,
    "count" INTEGER NOT NULL,
    "last_event_at" TIMESTAMPTZ(3) NOT NULL,
    "previous_alert_id" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "acknowledged_at" TIMESTAMPTZ(3),
    "acknowledged_by" TEXT,
    "resolved_at" TIMESTAMPTZ(3),
    "resolved_by" TEXT,
    "resolution" TEXT,
    "note" TEXT,

    CONSTRAINT "security_alerts_pkey" PRIMARY KEY ("alert_id")
);

-- CreateTable
CREATE TABLE "security_rules" (
    "tenant_id" TEXT NOT NULL,
    "security_rule_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "type" TEXT NOT NULL,
    "enabled" BOOLEAN NOT NULL,
    "conditions" JSONB NOT NULL,
    "actions" JSONB NOT NULL,
    "version" INTEGER NOT NULL DEFAULT 1,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "security_rules_pkey" PRIMARY KEY ("tenant_id","security_rule_id")
);

-- CreateTable
CREATE TABLE "blocked_entities" (
    "blocked_entity_id" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "entity_type" TEXT NOT NULL,
    "entity_value" TEXT NOT NULL,
    "reason" TEXT,
    "created_by" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "expires_at" TIMESTAMPTZ(3),

    CONSTRAINT "blocked_entities_pkey" PRIMARY KEY ("blocked_entity_id")
);

-- CreateTable
CREATE TABLE "blocked_entities_version" (
    "one" INTEGER NOT NULL DEFAULT 1,
    "version" BIGINT NOT NULL,

    CONSTRAINT "blocked_entities_version_pkey" PRIMARY KEY ("one")
);

-- CreateIndex
CREATE INDEX "security_events_tenant_id_last_at_idx" ON "security_events"("tenant_id", "last_at");

-- CreateIndex
CREATE INDEX "security_events_tenant_id_type_minute_idx" ON "security_events"("tenant_id", "type", "minute");

-- CreateIndex
CREATE INDEX "security_events_last_at_idx" ON "security_events"("last_at");

-- CreateIndex
CREATE INDEX "security_events_pending_idx" ON "security_events"("last_at") WHERE ("pending" = true);

-- CreateIndex
CREATE UNIQUE INDEX "security_events_tenant_id_type_entity_type_entity_id_minute_key" ON "security_events"("tenant_id", "type", "entity_type", "entity_id", "minute");

-- CreateIndex
CREATE INDEX "security_alerts_tenant_id_created_at_idx" ON "security_alerts"("tenant_id", "created_at");

-- CreateIndex
CREATE INDEX "security_alerts_tenant_id_rule_id_entity_id_created_at_idx" ON "security_alerts"("tenant_id", "rule_id", "entity_id", "created_at");

-- CreateIndex
CREATE INDEX "security_alerts_resolved_at_idx" ON "security_alerts"("resolved_at");

-- CreateIndex
CREATE INDEX "blocked_entities_tenant_id_created_at_idx" ON "blocked_entities"("tenant_id", "created_at");

-- CreateIndex
CREATE INDEX "blocked_entities_expires_at_idx" ON "blocked_entities"("expires_at");

-- CreateIndex
CREATE UNIQUE INDEX "blocked_entities_tenant_id_entity_type_entity_value_key" ON "blocked_entities"("tenant_id", "entity_type", "entity_value");
