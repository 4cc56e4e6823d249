// An install without development and optional packages, as README and docs/deployment.md describe it, can serve but not build.
import { execFile } from "node:child_process";
import { mkdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type BootstrapCredentials, createSandbox, INSTALLED, ROOT, runToEnd, type Sandbox, startGatewayProcess } from "../flows/processes.ts";
import { createTestDatabase } from "../kit/stores/database.ts";

interface Locked {
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly devOptional?: boolean;
}

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await createSandbox();
});
afterAll(() => sandbox.remove());

const exec = promisify(execFile);
/** Copies as hard links where the file system allows it: real paths, so that no module is resolved in the checkout. */
const copy = async (path: string): Promise<void> => {
  const target = join(sandbox.dir, path);
  await mkdir(dirname(target), { recursive: true });
  await exec("cp", ["-al", join(ROOT, path), target]).catch(() => exec("cp", ["-a", join(ROOT, path), target]));
};

/** The packages that `npm prune --omit=dev --omit=optional` leaves. */
const productionPackages = async (): Promise<readonly string[]> => {
  const { packages } = JSON.parse(await readFile(join(ROOT, "package-lock.json"), "utf8")) as { packages: Readonly<Record<string, Locked>> };
  return Object.entries(packages)
    .filter(([path, { dev, optional, devOptional }]) => /^node_modules\/(?!.*\/node_modules\/)/.test(path) && !(dev || optional || devOptional))
    .map(([path]) => path);
};

test("npm start serves from a built and pruned install, with the catalogue of applications, and without a build says what to do", {
  timeout: 90_000,
}, async () => {
  for (const path of [...(await productionPackages()), ...INSTALLED.filter((name) => name !== "dist")]) await copy(path);
  const unbuilt = await runToEnd(["npm", "--silent", "start"], { env: sandbox.env, cwd: sandbox.dir });
  expect({ code: unbuilt.code, stderr: unbuilt.stderr }).toEqual({
    code: 1,
    stderr: expect.stringMatching(/the build tools are not installed; run npm ci && npm run build first/),
  });

  await copy("dist");
  const env = { ...sandbox.env, DATABASE_URL: await createTestDatabase(), MASTER_KEY: Buffer.alloc(32, 7).toString("base64") };
  const gateway = await startGatewayProcess(env, ["npm", "--silent", "start"], sandbox.dir);
  expect((await fetch(`${gateway.url}/v1/health/ready`)).status).toBe(200);
  expect((await fetch(`${gateway.url}/v1/docs`)).status).toBe(200);
  expect(await (await fetch(gateway.url)).text()).toContain("/assets/index-");
  const bootstrap = await runToEnd([process.execPath, join(sandbox.dir, "dist/server/cli.js"), "bootstrap", "--json"], { env, cwd: sandbox.dir });
  const { token } = JSON.parse(bootstrap.stdout) as BootstrapCredentials;
  const catalogue = await fetch(`${gateway.url}/v1/app-templates/vaultwarden`, { headers: { authorization: `Bearer ${token}` } });
  expect([catalogue.status, await catalogue.json()]).toMatchObject([200, { data: { id: "vaultwarden", kind: "compose", available: true } }]);
  await gateway.end("SIGTERM");
});
