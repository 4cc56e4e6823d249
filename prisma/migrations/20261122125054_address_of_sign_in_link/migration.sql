-- AlterTable
ALTER TABLE "sign_in_links" ADD COLUMN     "email" TEXT;
