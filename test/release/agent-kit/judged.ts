// The program that the kit starts in these tests: the reference agent, or the broken one that its argument names.
import { runReference } from "./reference.ts";

await runReference().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
});
