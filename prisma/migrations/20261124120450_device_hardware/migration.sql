-- AlterTable
ALTER TABLE "devices" ADD COLUMN     "hardware" JSONB,
ADD COLUMN     "model" TEXT;
