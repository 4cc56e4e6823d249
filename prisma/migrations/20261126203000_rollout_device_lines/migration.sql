-- AlterTable
ALTER TABLE "rollout_devices" ADD COLUMN     "lines" JSONB;
