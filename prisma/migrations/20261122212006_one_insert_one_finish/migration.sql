-- By hand. Open commands move into a table of their own, histories and idempotency keys into the rows of their commands. Nothing is lost; the two tables
-- are written anew, so stop the nodes of an installation with many commands before you migrate it.
CREATE TABLE "command_queue" (
    "tenant_id" TEXT NOT NULL,
    "device_id" TEXT NOT NULL,
    "seq" BIGINT NOT NULL,
    "command_id" TEXT NOT NULL,
    "lane" TEXT NOT NULL,
    "priority" SMALLINT NOT NULL,
    "status" TEXT NOT NULL,
    "deadline_at" TIMESTAMPTZ(3) NOT NULL,
    "available_at" TIMESTAMPTZ(3) NOT NULL,
    "expires_at" TIMESTAMPTZ(3),
    "requires_ack" BOOLEAN NOT NULL,
    "redeliver_safe" BOOLEAN NOT NULL,
    "max_attempts" SMALLINT NOT NULL,
    "revision" INTEGER NOT NULL DEFAULT 0,
    "attempt" SMALLINT NOT NULL DEFAULT 0,
    "exec_deadline_at" TIMESTAMPTZ(3),
    "channel" TEXT,
    "session_epoch" BIGINT,
    "node_id" TEXT,
    "sent_at" TIMESTAMPTZ(3),
    "acked_at" TIMESTAMPTZ(3),
    "started_at" TIMESTAMPTZ(3),
    "ack_status" TEXT,
    "ack_at" TIMESTAMPTZ(3),
    "output" JSONB,
    "output_truncated" BOOLEAN NOT NULL DEFAULT false,
    "progress" JSONB,
    "cancel_requested_at" TIMESTAMPTZ(3),
    "cancel_reason" TEXT,
    "cancel_prev_status" TEXT,
    "history" JSON NOT NULL,

    CONSTRAINT "command_queue_pkey" PRIMARY KEY ("tenant_id","device_id","seq"),
    -- A state that no rule knows is a mistake.
    CONSTRAINT "command_queue_status_known" CHECK (status IN ('queued', 'sent', 'acknowledged', 'running', 'canceling')),
    CONSTRAINT "command_queue_tenant_named" CHECK (tenant_id <> '')
);

ALTER TABLE "commands" ADD COLUMN "history" JSON;

-- Each step names its attempt, session and node; the gateway leaves out what is as in the step before.
CREATE TEMPORARY TABLE "histories" ON COMMIT DROP AS
SELECT command_id, json_agg(
    jsonb_build_object('at', floor(extract(epoch FROM at) * 1000), 'to', to_status, 'by', actor, 'attempt', attempt, 'epoch', epoch, 'node', node_id)
    || jsonb_strip_nulls(jsonb_build_object('code', code)) || CASE WHEN detail IS NULL THEN '{}'::jsonb ELSE jsonb_build_object('detail', detail) END ORDER BY id) AS history
FROM "command_events" GROUP BY command_id;
CREATE UNIQUE INDEX ON "histories" (command_id);

INSERT INTO "command_queue" ("tenant_id", "device_id", "seq", "command_id", "lane", "priority", "status", "deadline_at", "available_at", "expires_at", "requires_ack", "redeliver_safe", "max_attempts", "attempt", "output_truncated", "exec_deadline_at", "channel", "session_epoch", "node_id", "sent_at", "acked_at", "started_at", "ack_status", "ack_at", "output", "progress", "cancel_requested_at", "cancel_reason", "cancel_prev_status", "history")
SELECT c.tenant_id, c.device_id, c.seq, c.command_id, c.lane, c.priority, c.status, c.deadline_at, c.available_at, c.expires_at, c.requires_ack, c.redeliver_safe, c.max_attempts, c.attempt, c.output_truncated, c.exec_deadline_at, c.channel, c.session_epoch, c.node_id, c.sent_at, c.acked_at, c.started_at, c.ack_status, c.ack_at, c.output, c.progress, c.cancel_requested_at, c.cancel_reason, c.cancel_prev_status, coalesce(h.history, '[]') FROM "commands" c LEFT JOIN "histories" h ON h.command_id = c.command_id WHERE c.deadline_at IS NOT NULL;

DROP INDEX "commands_canceling_cancel_requested_at_idx";
DROP INDEX "commands_ended_finished_at_idx";
DROP INDEX "commands_ended_tenant_id_command_id_idx";
DROP INDEX "commands_open_deadline_at_idx";
DROP INDEX "commands_open_device_lane_seq_idx";
DROP INDEX "commands_open_tenant_id_idx";
DROP INDEX "commands_queued_available_at_idx";
DROP INDEX "commands_device_id_seq_key";

ALTER TABLE "commands" DROP CONSTRAINT "commands_open_has_deadline",
    DROP CONSTRAINT "commands_status_known",
    DROP CONSTRAINT "commands_pkey",
    ALTER COLUMN "status" DROP NOT NULL,
    ALTER COLUMN "attempt" DROP NOT NULL,
    ALTER COLUMN "attempt" DROP DEFAULT,
    ALTER COLUMN "output_truncated" DROP NOT NULL,
    ALTER COLUMN "output_truncated" DROP DEFAULT,
    ALTER COLUMN "late" DROP NOT NULL,
    ALTER COLUMN "late" DROP DEFAULT;

UPDATE "commands" c SET status = NULL, finished_at = NULL, attempt = NULL, output_truncated = NULL, late = NULL, failure_code = NULL, late_outcome = NULL,
    exec_deadline_at = NULL, channel = NULL, session_epoch = NULL, node_id = NULL, sent_at = NULL, acked_at = NULL, started_at = NULL, ack_status = NULL, ack_at = NULL, output = NULL, progress = NULL, cancel_requested_at = NULL, cancel_reason = NULL, cancel_prev_status = NULL
WHERE c.deadline_at IS NOT NULL;
UPDATE "commands" c SET history = coalesce(h.history, '[]') FROM "commands" e LEFT JOIN "histories" h ON h.command_id = e.command_id
WHERE e.command_id = c.command_id AND c.deadline_at IS NULL;
-- Older releases knew ends without a time.
UPDATE "commands" SET finished_at = issued_at WHERE status IS NOT NULL AND finished_at IS NULL;

ALTER TABLE "commands" DROP COLUMN "deadline_at",
    ADD CONSTRAINT "commands_pkey" PRIMARY KEY ("tenant_id", "command_id"),
    ADD CONSTRAINT "commands_status_known" CHECK (status IN ('delivered', 'succeeded', 'failed', 'rejected', 'canceled', 'expired', 'timed_out', 'undeliverable')),
    ADD CONSTRAINT "commands_end_has_time" CHECK ((status IS NULL) = (finished_at IS NULL)),
    -- Room for the row as it ends, beside the row as it was queued.
    SET (fillfactor = 60);

DROP TABLE "command_events";
DROP TABLE "command_keys";

CREATE INDEX "command_queue_deadline_at_idx" ON "command_queue"("deadline_at");
CREATE INDEX "command_queue_queued_available_at_idx" ON "command_queue"("available_at") WHERE ((status = 'queued'::text) AND (seq > 0));
CREATE INDEX "command_queue_canceling_cancel_requested_at_idx" ON "command_queue"("cancel_requested_at") WHERE ((status = 'canceling'::text) AND (seq > 0));
CREATE INDEX "commands_issued_at_idx" ON "commands" USING BRIN ("issued_at") WITH (pages_per_range = 32, autosummarize = on);
CREATE INDEX "commands_finished_at_idx" ON "commands" USING BRIN ("finished_at") WITH (pages_per_range = 32, autosummarize = on);
CREATE UNIQUE INDEX "commands_tenant_id_device_id_idempotency_key_key" ON "commands"("tenant_id", "device_id", "idempotency_key") WHERE (idempotency_key IS NOT NULL);
-- The last one, because of indexes that seem to cost the same the planner takes the oldest, and this one finds everything that a device ever had.
CREATE UNIQUE INDEX "commands_device_id_seq_key" ON "commands"("device_id", "seq");

-- Every command as it is now, open or ended.
CREATE VIEW "commands_now" AS
SELECT c.command_id, c.tenant_id, c.device_id, c.seq, c.lane, c.priority, c.type, c.payload, c.requires_ack, c.issued_at, c.expires_at, c.max_attempts, c.redeliver_safe, c.exec_timeout_s, c.idempotency_key, c.request_hash, c.traceparent, c.created_by,
    q.deadline_at, coalesce(q.available_at, c.available_at) AS available_at, coalesce(q.status, c.status) AS status, coalesce(q.attempt, c.attempt, 0::smallint) AS attempt,
    coalesce(q.output_truncated, c.output_truncated, false) AS output_truncated,
    coalesce(q.exec_deadline_at, c.exec_deadline_at) AS exec_deadline_at, coalesce(q.channel, c.channel) AS channel, coalesce(q.session_epoch, c.session_epoch) AS session_epoch, coalesce(q.node_id, c.node_id) AS node_id, coalesce(q.sent_at, c.sent_at) AS sent_at, coalesce(q.acked_at, c.acked_at) AS acked_at, coalesce(q.started_at, c.started_at) AS started_at, coalesce(q.ack_status, c.ack_status) AS ack_status, coalesce(q.ack_at, c.ack_at) AS ack_at, coalesce(q.output, c.output) AS output, coalesce(q.progress, c.progress) AS progress, coalesce(q.cancel_requested_at, c.cancel_requested_at) AS cancel_requested_at, coalesce(q.cancel_reason, c.cancel_reason) AS cancel_reason, coalesce(q.cancel_prev_status, c.cancel_prev_status) AS cancel_prev_status,
    c.finished_at, c.failure_code, coalesce(c.late, false) AS late, c.late_outcome, coalesce(q.history, c.history) AS history, q.revision
FROM "commands" c
LEFT JOIN LATERAL (
    -- `OFFSET 0`: by its whole key, also while the planner believes that the queue is empty.
    SELECT * FROM "command_queue" o WHERE o.tenant_id = c.tenant_id AND o.device_id = c.device_id AND o.seq = c.seq AND c.finished_at IS NULL OFFSET 0
) q ON true;

-- The next command's number is written with each command: beside the last version, so that no index is touched.
ALTER TABLE "devices" SET (fillfactor = 70);

-- See analyze_less and sample_less. Rows of the queue come and go, so it is vacuumed after a number of changes instead of a share of its rows, and keeps its
-- pages: a statement that was planned for one page would go on reading the whole table once it has grown.
ALTER TABLE "command_queue" SET (fillfactor = 80, vacuum_truncate = off, autovacuum_analyze_threshold = 50000, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_scale_factor = 0);

DO $$
DECLARE hot record;
BEGIN
  FOR hot IN
    SELECT a.attrelid::regclass AS table_name, a.attname AS column_name, a.atttypid IN ('json'::regtype, 'jsonb'::regtype) AS is_document
    FROM pg_attribute a WHERE a.attrelid IN ('commands'::regclass, 'command_queue'::regclass) AND a.attnum > 0 AND NOT a.attisdropped
  LOOP
    EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET STATISTICS %s', hot.table_name, hot.column_name, CASE WHEN hot.is_document THEN 0 ELSE 10 END);
  END LOOP;
END $$;

-- For the same reason it begins with some pages: of rows that are gone again.
INSERT INTO "command_queue" (tenant_id, device_id, seq, command_id, lane, priority, status, deadline_at, available_at, requires_ack, redeliver_safe, max_attempts, history)
SELECT 'ten_0', 'dev_0', n, repeat('0', 100), '', 0, 'queued', now(), now(), true, true, 0, '[]' FROM generate_series(1, 2000) n;
DELETE FROM "command_queue" WHERE tenant_id = 'ten_0';
