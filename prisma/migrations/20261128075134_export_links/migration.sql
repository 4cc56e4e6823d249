-- AlterTable
ALTER TABLE "data_exports" ADD COLUMN     "link_id" TEXT;
