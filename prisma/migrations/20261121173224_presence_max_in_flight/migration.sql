-- AlterTable
ALTER TABLE "device_presence" ADD COLUMN     "max_in_flight" SMALLINT;
