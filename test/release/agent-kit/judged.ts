// The program that the kit starts in these tests: the reference agent, or the broken one that its argument names.
import { BROKEN } from "./broken.ts";
import { runReference } from "./reference.ts";

const [, , name = ""] = process.argv.filter((word) => word !== "agent");
await runReference(BROKEN[name]?.() ?? {}).catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
});
