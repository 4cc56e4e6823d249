-- AlterTable
ALTER TABLE "devices" ADD COLUMN     "min_sig_version" SMALLINT NOT NULL DEFAULT 1;

ALTER TABLE "devices" ADD CONSTRAINT "devices_min_sig_version_check" CHECK ("min_sig_version" IN (1, 2));
