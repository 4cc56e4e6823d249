-- DropIndex
DROP INDEX "command_events_command_id_id_idx";

-- DropIndex
DROP INDEX "commands_tenant_id_device_id_idempotency_key_key";

-- DropIndex
DROP INDEX "commands_tenant_id_issued_at_idx";

-- DropIndex
DROP INDEX "outbox_events_position_key";

-- AlterTable
ALTER TABLE "command_events" DROP CONSTRAINT "command_events_pkey",
ADD CONSTRAINT "command_events_pkey" PRIMARY KEY ("command_id", "id");

-- CreateTable
CREATE TABLE "command_keys" (
    "device_id" TEXT NOT NULL,
    "idempotency_key" TEXT NOT NULL,
    "command_id" TEXT NOT NULL,

    CONSTRAINT "command_keys_pkey" PRIMARY KEY ("device_id","idempotency_key")
);

-- By hand: what the dropped index knew.
INSERT INTO "command_keys" ("device_id", "idempotency_key", "command_id")
SELECT "device_id", "idempotency_key", "command_id" FROM "commands" WHERE "idempotency_key" IS NOT NULL;
