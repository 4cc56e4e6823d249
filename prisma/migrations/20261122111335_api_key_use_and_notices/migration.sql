-- AlterTable
ALTER TABLE "api_keys" ADD COLUMN     "last_used_ip" TEXT,
ADD COLUMN     "notice_days" INTEGER;
