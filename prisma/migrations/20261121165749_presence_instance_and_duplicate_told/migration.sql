-- AlterTable
ALTER TABLE "device_presence" ADD COLUMN     "duplicate_told_at" TIMESTAMPTZ(3),
ADD COLUMN     "instance_id" TEXT;
