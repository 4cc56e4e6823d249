-- AlterTable
ALTER TABLE "apps" ADD COLUMN     "drift_since" TIMESTAMPTZ(3),
ADD COLUMN     "secret_keys" TEXT[] DEFAULT ARRAY[]::TEXT[];
