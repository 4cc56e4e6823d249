// The image of docs/deploy/Dockerfile without an engine: the files that its last stage copies, with the command that it runs.
import { cp, mkdir, readFile, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { copiesOf, type Stage, stagesOf } from "../flows/dockerfile.ts";
import { createSandbox, ROOT, startGatewayProcess } from "../flows/processes.ts";

test("the files of the Dockerfile's last stage start a production gateway by themselves", { timeout: 90_000 }, async () => {
  const last = stagesOf(await readFile(join(ROOT, "docs/deploy/Dockerfile"), "utf8")).at(-1) as Stage;
  const sandbox = await createSandbox({ NODE_ENV: "production", ALLOW_IN_PRODUCTION: "local-issuer,embedded-database,any-origin" });
  try {
    const app = join(sandbox.dir, "app");
    await mkdir(app);
    for (const source of copiesOf(last).flatMap(({ sources }) => sources.map((path) => path.replace(/^\/app\//, "")))) {
      await mkdir(dirname(join(app, source)), { recursive: true });
      if (source === "node_modules") await symlink(join(ROOT, source), join(app, source));
      else await cp(join(ROOT, source), join(app, source), { recursive: true });
    }
    const [command = []] = last.steps.flatMap(({ word, rest }) => (word === "CMD" ? [JSON.parse(rest) as string[]] : []));
    expect(command[0]).toBe("node");
    const gateway = await startGatewayProcess(sandbox.env, [process.execPath, ...command.slice(1)], app);
    expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200);
    expect(await (await fetch(gateway.url)).text()).toContain("/assets/index-");
    expect((await gateway.end("SIGTERM")).code).toBe(0);
  } finally {
    await sandbox.remove();
  }
});
