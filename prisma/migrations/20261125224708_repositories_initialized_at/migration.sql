-- AlterTable
ALTER TABLE "backup_repositories" ADD COLUMN     "initialized_at" TIMESTAMPTZ(3);

-- A repository that has held a backup is there, or is lost.
UPDATE "backup_repositories" r SET "initialized_at" = now()
 WHERE r."last_deleted_at" IS NOT NULL
    OR EXISTS (SELECT FROM "backups" b WHERE b."tenant_id" = r."tenant_id" AND b."device_id" = r."device_id"
                 AND b."destination_id" = r."destination_id" AND b."checksum" IS NOT NULL);
