-- AlterTable
ALTER TABLE "devices" ADD COLUMN     "runtimes" JSONB;
