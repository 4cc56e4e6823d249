-- CreateTable
CREATE TABLE "api_keys" (
    "key_id" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "role" TEXT NOT NULL,
    "prefix" TEXT NOT NULL,
    "last4" TEXT NOT NULL,
    "hash" BYTEA NOT NULL,
    "previous_hash" BYTEA,
    "previous_valid_until" TIMESTAMPTZ(3),
    "ip_allowlist" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "created_by" TEXT NOT NULL,
    "expires_at" TIMESTAMPTZ(3),
    "revoked_at" TIMESTAMPTZ(3),
    "last_used_at" TIMESTAMPTZ(3),
    "version" INTEGER NOT NULL DEFAULT 1,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "api_keys_pkey" PRIMARY KEY ("key_id")
);

-- CreateTable
CREATE TABLE "commands" (
    "command_id" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "device_id" TEXT NOT NULL,
    "seq" BIGINT NOT NULL,
    "lane" TEXT NOT NULL,
    "priority" SMALLINT NOT NULL DEFAULT 5,
    "type" TEXT NOT NULL,
    "payload" JSONB NOT NULL,
    "requires_ack" BOOLEAN NOT NULL DEFAULT true,
    "issued_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "status" TEXT NOT NULL,
    "deadline_at" TIMESTAMPTZ(3),
    "available_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "expires_at" TIMESTAMPTZ(3),
    "attempt" SMALLINT NOT NULL DEFAULT 0,
    "max_attempts" SMALLINT NOT NULL DEFAULT 10,
    "redeliver_safe" BOOLEAN NOT NULL DEFAULT true,
    "exec_timeout_s" INTEGER NOT NULL,
    "exec_deadline_at" TIMESTAMPTZ(3),
    "channel" TEXT,
    "session_epoch" BIGINT,
    "node_id" TEXT,
    "sent_at" TIMESTAMPTZ(3),
    "acked_at" TIMESTAMPTZ(3),
    "started_at" TIMESTAMPTZ(3),
    "finished_at" TIMESTAMPTZ(3),
    "ack_status" TEXT,
    "output" JSONB,
    "output_truncated" BOOLEAN NOT NULL DEFAULT false,
    "progress" JSONB,
    "failure_code" TEXT,
    "cancel_requested_at" TIMESTAMPTZ(3),
    "cancel_reason" TEXT,
    "cancel_prev_status" TEXT,
    "late" BOOLEAN NOT NULL DEFAULT false,
    "late_outcome" JSONB,
    "idempotency_key" TEXT,
    "request_hash" BYTEA,
    "traceparent" TEXT,
    "created_by" TEXT NOT NULL,

    CONSTRAINT "commands_pkey" PRIMARY KEY ("command_id")
);

-- CreateTable
CREATE TABLE "command_events" (
    "id" BIGSERIAL NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "command_id" TEXT NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "from_status" TEXT,
    "to_status" TEXT NOT NULL,
    "actor" TEXT NOT NULL,
    "node_id" TEXT,
    "epoch" BIGINT,
    "attempt" SMALLINT NOT NULL DEFAULT 0,
    "code" TEXT,
    "detail" JSONB,

    CONSTRAINT "command_events_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "deployments" (
    "deployment_id" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "runtime" TEXT NOT NULL DEFAULT 'docker-compose',
    "is_default" BOOLEAN NOT NULL DEFAULT false,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "deployments_pkey" PRIMARY KEY ("deployment_id")
);

-- CreateTable
CREATE TABLE "devices" (
    "device_id" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "deployment_id" TEXT NOT NULL,
    "agent_id" TEXT NOT NULL,
    "fingerprint" TEXT NOT NULL,
    "name" TEXT,
    "hostname" TEXT,
    "platform" TEXT,
    "arch" TEXT,
    "os_version" TEXT,
    "agent_version" TEXT,
    "tags" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "status" TEXT NOT NULL DEFAULT 'provisioning',
    "offline_reason" TEXT,
    "maintenance" JSONB,
    "inventory" JSONB,
    "secret" BYTEA NOT NULL,
    "pending_secret" BYTEA,
    "secret_rotated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "next_command_seq" BIGINT NOT NULL DEFAULT 1,
    "version" INTEGER NOT NULL DEFAULT 1,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "deleted_at" TIMESTAMPTZ(3),

    CONSTRAINT "devices_pkey" PRIMARY KEY ("device_id")
);

-- CreateTable
CREATE TABLE "device_presence" (
    "device_id" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "epoch" BIGINT NOT NULL DEFAULT 0,
    "connectivity" TEXT NOT NULL DEFAULT 'none',
    "node_id" TEXT,
    "session_id" TEXT,
    "since" TIMESTAMPTZ(3),
    "last_seen_at" TIMESTAMPTZ(3),
    "last_heartbeat_at" TIMESTAMPTZ(3),
    "offline_after" TIMESTAMPTZ(3),
    "metrics" JSONB,
    "clock_offset_ms" INTEGER,

    CONSTRAINT "device_presence_pkey" PRIMARY KEY ("device_id")
);

-- CreateTable
CREATE TABLE "idempotency_keys" (
    "scope" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "fingerprint" BYTEA NOT NULL,
    "status" INTEGER,
    "answer" BYTEA,
    "locked_until" TIMESTAMPTZ(3) NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "idempotency_keys_pkey" PRIMARY KEY ("scope")
);

-- CreateTable
CREATE TABLE "stream_tickets" (
    "hash" BYTEA NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "user_id" TEXT NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "stream_tickets_pkey" PRIMARY KEY ("hash")
);

-- CreateTable
CREATE TABLE "used_signatures" (
    "agent_id" TEXT NOT NULL,
    "signature" BYTEA NOT NULL,
    "route" TEXT NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "used_signatures_pkey" PRIMARY KEY ("agent_id","signature")
);

-- CreateTable
CREATE TABLE "outbox_events" (
    "event_id" TEXT NOT NULL,
    "position" BIGSERIAL NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "type" TEXT NOT NULL,
    "subject_id" TEXT NOT NULL,
    "data" JSONB NOT NULL,
    "request_id" TEXT,
    "traceparent" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "sequence" BIGINT,
    "dispatched_at" TIMESTAMPTZ(3),

    CONSTRAINT "outbox_events_pkey" PRIMARY KEY ("event_id")
);

-- CreateTable
CREATE TABLE "pairings" (
    "pairing_id" TEXT NOT NULL,
    "code_hash" BYTEA NOT NULL,
    "fingerprint" TEXT NOT NULL,
    "device_name" TEXT,
    "platform" TEXT,
    "initiator_ip" TEXT NOT NULL,
    "status" TEXT NOT NULL DEFAULT 'pending',
    "attempts" INTEGER NOT NULL DEFAULT 0,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,
    "tenant_id" TEXT,
    "prepared_by" TEXT,
    "prepared_email" TEXT,
    "prepared_role" TEXT,
    "activation_token_hash" BYTEA,
    "activation_token_expires_at" TIMESTAMPTZ(3),
    "device_id" TEXT,
    "agent_id" TEXT,
    "activated_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "pairings_pkey" PRIMARY KEY ("pairing_id")
);

-- CreateTable
CREATE TABLE "enrollments" (
    "pairing_id" TEXT NOT NULL,
    "tenant_id" TEXT,
    "device_id" TEXT,
    "current_step" TEXT NOT NULL DEFAULT 'pending',
    "steps" JSONB NOT NULL DEFAULT '{}',
    "error" TEXT,
    "completed_at" TIMESTAMPTZ(3),
    "failed_at" TIMESTAMPTZ(3),
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "enrollments_pkey" PRIMARY KEY ("pairing_id")
);

-- CreateTable
CREATE TABLE "enrollment_tokens" (
    "token_id" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "hash" BYTEA NOT NULL,
    "max_uses" INTEGER,
    "uses" INTEGER NOT NULL DEFAULT 0,
    "tags" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "deployment_id" TEXT,
    "created_by" TEXT NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,
    "revoked_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "enrollment_tokens_pkey" PRIMARY KEY ("token_id")
);

-- CreateTable
CREATE TABLE "tenants" (
    "tenant_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "slug" TEXT NOT NULL,
    "plan" TEXT NOT NULL,
    "status" TEXT NOT NULL DEFAULT 'active',
    "owner_user_id" TEXT NOT NULL,
    "durable_object_id" TEXT NOT NULL,
    "limit_overrides" JSONB NOT NULL DEFAULT '{}',
    "rate_limit_overrides" JSONB NOT NULL DEFAULT '{}',
    "version" INTEGER NOT NULL DEFAULT 1,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "tenants_pkey" PRIMARY KEY ("tenant_id")
);

-- CreateTable
CREATE TABLE "memberships" (
    "member_id" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "user_id" TEXT NOT NULL,
    "role" TEXT NOT NULL,
    "email" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "memberships_pkey" PRIMARY KEY ("member_id")
);

-- CreateIndex
CREATE UNIQUE INDEX "api_keys_hash_key" ON "api_keys"("hash");

-- CreateIndex
CREATE UNIQUE INDEX "api_keys_previous_hash_key" ON "api_keys"("previous_hash");

-- CreateIndex
CREATE INDEX "api_keys_tenant_id_created_at_idx" ON "api_keys"("tenant_id", "created_at");

-- CreateIndex
CREATE INDEX "commands_tenant_id_issued_at_idx" ON "commands"("tenant_id", "issued_at");

-- CreateIndex
CREATE INDEX "commands_open_device_lane_seq_idx" ON "commands"("device_id", "lane", "seq") WHERE (status = ANY (ARRAY['queued'::text, 'sent'::text, 'acknowledged'::text, 'running'::text, 'canceling'::text]));

-- CreateIndex
CREATE INDEX "commands_open_deadline_at_idx" ON "commands"("deadline_at") WHERE (status = ANY (ARRAY['queued'::text, 'sent'::text, 'acknowledged'::text, 'running'::text, 'canceling'::text]));

-- CreateIndex
CREATE INDEX "commands_queued_available_at_idx" ON "commands"("available_at") WHERE (status = 'queued');

-- CreateIndex
CREATE UNIQUE INDEX "commands_device_id_seq_key" ON "commands"("device_id", "seq");

-- CreateIndex
CREATE UNIQUE INDEX "commands_tenant_id_device_id_idempotency_key_key" ON "commands"("tenant_id", "device_id", "idempotency_key");

-- CreateIndex
CREATE INDEX "command_events_command_id_id_idx" ON "command_events"("command_id", "id");

-- CreateIndex
CREATE UNIQUE INDEX "deployments_tenant_id_name_key" ON "deployments"("tenant_id", "name");

-- CreateIndex
CREATE UNIQUE INDEX "devices_agent_id_key" ON "devices"("agent_id");

-- CreateIndex
CREATE INDEX "devices_tenant_id_created_at_idx" ON "devices"("tenant_id", "created_at");

-- CreateIndex
CREATE INDEX "devices_fingerprint_idx" ON "devices"("fingerprint");

-- CreateIndex
CREATE UNIQUE INDEX "devices_living_fingerprint_key" ON "devices"("fingerprint") WHERE ("deleted_at" IS NULL);

-- CreateIndex
CREATE INDEX "device_presence_node_id_idx" ON "device_presence"("node_id");

-- CreateIndex
CREATE INDEX "idempotency_keys_expires_at_idx" ON "idempotency_keys"("expires_at");

-- CreateIndex
CREATE INDEX "stream_tickets_expires_at_idx" ON "stream_tickets"("expires_at");

-- CreateIndex
CREATE INDEX "used_signatures_expires_at_idx" ON "used_signatures"("expires_at");

-- CreateIndex
CREATE UNIQUE INDEX "outbox_events_position_key" ON "outbox_events"("position");

-- CreateIndex
CREATE INDEX "outbox_events_tenant_id_position_idx" ON "outbox_events"("tenant_id", "position");

-- CreateIndex
CREATE INDEX "outbox_events_created_at_idx" ON "outbox_events"("created_at");

-- CreateIndex
CREATE INDEX "outbox_events_undispatched_position_idx" ON "outbox_events"("position") WHERE ("dispatched_at" IS NULL);

-- CreateIndex
CREATE UNIQUE INDEX "pairings_code_hash_key" ON "pairings"("code_hash");

-- CreateIndex
CREATE INDEX "pairings_fingerprint_created_at_idx" ON "pairings"("fingerprint", "created_at");

-- CreateIndex
CREATE INDEX "pairings_status_expires_at_idx" ON "pairings"("status", "expires_at");

-- CreateIndex
CREATE UNIQUE INDEX "enrollments_device_id_key" ON "enrollments"("device_id");

-- CreateIndex
CREATE UNIQUE INDEX "enrollment_tokens_hash_key" ON "enrollment_tokens"("hash");

-- CreateIndex
CREATE INDEX "enrollment_tokens_tenant_id_created_at_idx" ON "enrollment_tokens"("tenant_id", "created_at");

-- CreateIndex
CREATE UNIQUE INDEX "tenants_slug_key" ON "tenants"("slug");

-- CreateIndex
CREATE UNIQUE INDEX "tenants_durable_object_id_key" ON "tenants"("durable_object_id");

-- CreateIndex
CREATE INDEX "memberships_user_id_idx" ON "memberships"("user_id");

-- CreateIndex
CREATE UNIQUE INDEX "memberships_tenant_id_user_id_key" ON "memberships"("tenant_id", "user_id");

-- By hand, because a Prisma schema has no words for it. --------------------------------------------------------------

-- A state that no rule knows is a mistake, and an open command without a deadline would be forgotten by every sweep.
ALTER TABLE "commands"
    ADD CONSTRAINT "commands_status_known" CHECK (status IN ('queued', 'sent', 'acknowledged', 'running', 'canceling', 'delivered',
        'succeeded', 'failed', 'rejected', 'canceled', 'expired', 'timed_out', 'undeliverable')),
    ADD CONSTRAINT "commands_open_has_deadline" CHECK (deadline_at IS NOT NULL OR status IN ('delivered', 'succeeded', 'failed',
        'rejected', 'canceled', 'expired', 'timed_out', 'undeliverable'));

-- Half of every page stays free, so that the next heartbeat's version of a row lies beside the last and no index is touched.
ALTER TABLE "device_presence" SET (fillfactor = 50);

-- An empty tenant id is a forgotten one.
ALTER TABLE "api_keys" ADD CONSTRAINT "api_keys_tenant_named" CHECK (tenant_id <> '');
ALTER TABLE "commands" ADD CONSTRAINT "commands_tenant_named" CHECK (tenant_id <> '');
ALTER TABLE "command_events" ADD CONSTRAINT "command_events_tenant_named" CHECK (tenant_id <> '');
ALTER TABLE "deployments" ADD CONSTRAINT "deployments_tenant_named" CHECK (tenant_id <> '');
ALTER TABLE "devices" ADD CONSTRAINT "devices_tenant_named" CHECK (tenant_id <> '');
ALTER TABLE "device_presence" ADD CONSTRAINT "device_presence_tenant_named" CHECK (tenant_id <> '');
ALTER TABLE "idempotency_keys" ADD CONSTRAINT "idempotency_keys_tenant_named" CHECK (tenant_id <> '');
ALTER TABLE "stream_tickets" ADD CONSTRAINT "stream_tickets_tenant_named" CHECK (tenant_id <> '');
ALTER TABLE "outbox_events" ADD CONSTRAINT "outbox_events_tenant_named" CHECK (tenant_id <> '');
ALTER TABLE "pairings" ADD CONSTRAINT "pairings_tenant_named" CHECK (tenant_id <> '');
ALTER TABLE "enrollments" ADD CONSTRAINT "enrollments_tenant_named" CHECK (tenant_id <> '');
ALTER TABLE "enrollment_tokens" ADD CONSTRAINT "enrollment_tokens_tenant_named" CHECK (tenant_id <> '');
ALTER TABLE "tenants" ADD CONSTRAINT "tenants_tenant_named" CHECK (tenant_id <> '');
ALTER TABLE "memberships" ADD CONSTRAINT "memberships_tenant_named" CHECK (tenant_id <> '');
