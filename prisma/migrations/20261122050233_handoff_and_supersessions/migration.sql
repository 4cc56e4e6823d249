-- AlterTable
ALTER TABLE "device_presence" ADD COLUMN     "handed_from" TEXT,
ADD COLUMN     "superseded_at" TIMESTAMPTZ(3),
ADD COLUMN     "supersessions" SMALLINT NOT NULL DEFAULT 0;
