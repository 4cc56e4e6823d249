-- AlterTable
ALTER TABLE "tunnels" ADD COLUMN     "idle_seconds" INTEGER,
ADD COLUMN     "max_connections" INTEGER,
ADD COLUMN     "requests_per_minute" INTEGER;
