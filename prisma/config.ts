// Tells the Prisma command line where the schema lives. A default export, because that is what Prisma reads; no address, because the gateway gives it.
import { defineConfig } from "prisma/config";

export default defineConfig({
  schema: "schema",
  migrations: { path: "migrations" },
});
