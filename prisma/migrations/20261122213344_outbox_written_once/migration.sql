-- By hand: the order. Changing a type first locks the table until the end, so no event is written between the copies below and the trigger.
ALTER TABLE "outbox_events" ALTER COLUMN "data" SET DATA TYPE JSON;

-- CreateTable
CREATE TABLE "outbox_pending" (
    "position" BIGINT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "positions" BIGINT[],
    "created_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "outbox_pending_pkey" PRIMARY KEY ("position")
);

-- CreateTable
CREATE TABLE "outbox_dispatches" (
    "tenant_id" TEXT NOT NULL,
    "last_sequence" BIGINT NOT NULL,
    "positions" BIGINT[],
    "highest_position" BIGINT NOT NULL,
    "dispatched_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "outbox_dispatches_pkey" PRIMARY KEY ("tenant_id","last_sequence")
);

-- By hand: what the rows of events said. Where retention has left holes, a run of consecutive numbers ends.
INSERT INTO "outbox_dispatches" ("tenant_id", "last_sequence", "positions", "highest_position", "dispatched_at")
SELECT "tenant_id", max("sequence"), array_agg("position" ORDER BY "sequence"), max("position"), coalesce(max("dispatched_at"), now())
FROM (
    SELECT *, "sequence" - row_number() OVER (PARTITION BY "tenant_id" ORDER BY "sequence") AS "run" FROM "outbox_events" WHERE "sequence" IS NOT NULL
) AS "numbered"
GROUP BY "tenant_id", "run", "sequence" / 200;

INSERT INTO "outbox_pending" ("position", "tenant_id", "positions", "created_at")
SELECT min("position"), "tenant_id", array_agg("position" ORDER BY "position"), min("created_at")
FROM "outbox_events" WHERE "dispatched_at" IS NULL GROUP BY "tenant_id", "position" / 200;

-- DropIndex
DROP INDEX "outbox_events_created_at_idx";

-- DropIndex
DROP INDEX "outbox_events_tenant_id_sequence_key";

-- DropIndex
DROP INDEX "outbox_events_undispatched_position_idx";

-- AlterTable
ALTER TABLE "outbox_events" DROP COLUMN "dispatched_at",
DROP COLUMN "sequence";

-- CreateIndex
CREATE INDEX "outbox_dispatches_highest_position_idx" ON "outbox_dispatches"("highest_position");

-- CreateIndex
CREATE INDEX "outbox_dispatches_dispatched_at_idx" ON "outbox_dispatches"("dispatched_at");

-- CreateIndex
CREATE INDEX "outbox_events_position_idx" ON "outbox_events"("position");

-- By hand: whoever writes an event, the relay hears of it. One row for each statement and tenant.
CREATE FUNCTION outbox_events_written() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO outbox_pending (position, tenant_id, positions, created_at)
  SELECT min(position), tenant_id, array_agg(position ORDER BY position), min(created_at) FROM written GROUP BY tenant_id;
  RETURN NULL;
END $$;
CREATE TRIGGER outbox_events_written AFTER INSERT ON outbox_events
REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION outbox_events_written();

-- By hand: as for the other tables that change thousands of times a minute (20261121212000_analyze_less). Dead rows of what waits slow every round of
-- the relay, so they go early. Positions stay in their row, compressed if need be.
ALTER TABLE "outbox_pending" SET (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0, autovacuum_analyze_threshold = 50000);
ALTER TABLE "outbox_dispatches" SET (autovacuum_analyze_threshold = 50000);
ALTER TABLE "outbox_dispatches" ALTER COLUMN "positions" SET STATISTICS 0, ALTER COLUMN "positions" SET STORAGE MAIN;
