-- AlterTable
ALTER TABLE "rollouts" ADD COLUMN     "waiting_since" TIMESTAMPTZ(3);
