// Tells the Prisma CLI where the schema is. It reads a default export. There is no database URL: the gateway passes it.
import { defineConfig } from "prisma/config";

export default defineConfig({
  schema: "schema",
  migrations: { path: "migrations" },
});
