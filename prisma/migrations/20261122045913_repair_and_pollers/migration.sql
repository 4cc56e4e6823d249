-- AlterTable
ALTER TABLE "device_presence" ADD COLUMN     "poll_instance_id" TEXT,
ADD COLUMN     "poll_refused_at" TIMESTAMPTZ(3),
ADD COLUMN     "poll_until" TIMESTAMPTZ(3),
ALTER COLUMN "clock_offset_ms" SET DATA TYPE DOUBLE PRECISION;

-- AlterTable
ALTER TABLE "devices" ADD COLUMN     "repair_until" TIMESTAMPTZ(3);

-- AlterTable
ALTER TABLE "enrollment_tokens" ADD COLUMN     "allow_repair" BOOLEAN NOT NULL DEFAULT false;

-- AlterTable
ALTER TABLE "pairings" ADD COLUMN     "replaces_device_id" TEXT;
