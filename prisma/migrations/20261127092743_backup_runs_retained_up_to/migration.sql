-- AlterTable
ALTER TABLE "backup_runs" ADD COLUMN     "retained_up_to" TEXT;
