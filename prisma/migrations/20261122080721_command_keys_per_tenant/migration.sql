-- By hand. The table is written anew beside the old one, so that only the last step keeps writers waiting. A key without its command is left behind.
CREATE TABLE "command_keys_new" (
    "tenant_id" TEXT NOT NULL,
    "device_id" TEXT NOT NULL,
    "idempotency_key" TEXT NOT NULL,
    "command_id" TEXT NOT NULL,

    CONSTRAINT "command_keys_new_pkey" PRIMARY KEY ("tenant_id", "device_id", "idempotency_key"),
    CONSTRAINT "command_keys_tenant_named" CHECK (tenant_id <> '')
);

INSERT INTO "command_keys_new" ("tenant_id", "device_id", "idempotency_key", "command_id")
SELECT c."tenant_id", k."device_id", k."idempotency_key", k."command_id" FROM "command_keys" k JOIN "commands" c USING ("command_id");

-- What nodes wrote and deleted meanwhile.
LOCK TABLE "command_keys" IN SHARE ROW EXCLUSIVE MODE;

INSERT INTO "command_keys_new" ("tenant_id", "device_id", "idempotency_key", "command_id")
SELECT c."tenant_id", k."device_id", k."idempotency_key", k."command_id" FROM "command_keys" k JOIN "commands" c USING ("command_id")
WHERE NOT EXISTS (SELECT 1 FROM "command_keys_new" n WHERE n."tenant_id" = c."tenant_id" AND n."device_id" = k."device_id" AND n."idempotency_key" = k."idempotency_key");

DELETE FROM "command_keys_new" n WHERE NOT EXISTS (SELECT 1 FROM "command_keys" k WHERE k."device_id" = n."device_id" AND k."idempotency_key" = n."idempotency_key");

DROP TABLE "command_keys";
ALTER TABLE "command_keys_new" RENAME TO "command_keys";
ALTER TABLE "command_keys" RENAME CONSTRAINT "command_keys_new_pkey" TO "command_keys_pkey";

-- As the old table had them: see analyze_less and sample_less.
ALTER TABLE "command_keys" SET (autovacuum_analyze_threshold = 50000),
    ALTER COLUMN "tenant_id" SET STATISTICS 10,
    ALTER COLUMN "device_id" SET STATISTICS 10,
    ALTER COLUMN "idempotency_key" SET STATISTICS 10,
    ALTER COLUMN "command_id" SET STATISTICS 10;
