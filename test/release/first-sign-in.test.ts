// The link that a newcomer finds at the end of what the gateway prints: with one process, with workers and in the demo it opens a tenant of theirs.
import { expect, test } from "vitest";
import { built, createSandbox, type Env, type GatewayProcess, startGatewayProcess } from "../flows/processes.ts";
import { openBrowser } from "../kit/browser/browser.ts";
import { eventually } from "../kit/checks/eventually.ts";

const LINE = /^Sign in within ten minutes, once: (\S+\/v1\/auth\/login\?token=[\w-]{43}) /m;
const START_MS = 30_000;

const start = async <T>(args: readonly string[], use: (gateway: GatewayProcess) => Promise<T>, env: Env = {}): Promise<T> => {
  const sandbox = await createSandbox(env);
  try {
    const gateway = await startGatewayProcess(sandbox.env, [process.execPath, ...args]);
    const result = await use(gateway);
    await gateway.end("SIGTERM");
    return result;
  } finally {
    await sandbox.remove();
  }
};

/** Follows the link as a browser does, and says whose tenants the session sees. */
const signIn = async ({ output, url: home }: GatewayProcess) => {
  const url = await eventually(() => {
    const [, found] = LINE.exec(output.stdout) ?? [];
    if (found === undefined) throw new Error(`no link in: ${output.stdout}`);
    return found;
  }, START_MS);
  const browser = openBrowser();
  const page = await browser.visit("GET", url, { headers: { accept: "text/html" } });
  expect([page.status, page.location]).toEqual([303, `${home}/`]);
  const me = (await browser.visit("GET", `${home}/v1/auth/me`)).body.data;
  const tenants = (await browser.visit("GET", `${home}/v1/account/tenants`)).body.data;
  return { browser, me, tenants };
};

test.each([
  ["one process", []],
  ["workers", ["--workers", "2"]],
])("%s: the last line is a link whose person owns a tenant", { timeout: 90_000 }, async (_kind, args) => {
  const { me, tenants, lines } = await start([built("server/main.js"), ...args], async (gateway) => ({
    ...(await signIn(gateway)),
    lines: gateway.output.stdout.trim().split("\n"),
  }));
  expect(lines.at(-1)).toMatch(LINE);
  expect(lines.filter((line) => LINE.test(line))).toHaveLength(1);
  expect(me).toMatchObject({ subject: "local-admin", role: "owner" });
  expect(tenants).toMatchObject([{ name: "Home" }]);
});

test("the demo: the link opens the tenant with its devices", { timeout: 90_000 }, async () => {
  const { tenants, devices } = await start([built("agent-sim/demo.js"), "--devices", "3"], async (gateway) => {
    const { browser, ...seen } = await signIn(gateway);
    return { ...seen, devices: (await browser.visit("GET", `${gateway.url}/v1/devices`)).body.data };
  });
  expect(tenants).toMatchObject([{ name: "Demo" }]);
  expect(devices).toHaveLength(3);
});

test("production prints no link, since its log would keep it", { timeout: 60_000 }, async () => {
  const env = { NODE_ENV: "production", ALLOW_IN_PRODUCTION: "local-issuer,embedded-database,any-origin" };
  const stdout = await start(
    [built("server/main.js")],
    async (gateway) => {
      await eventually(() => expect(gateway.output.stdout).toMatch(/Get credentials/));
      await gateway.end("SIGTERM");
      return gateway.output.stdout;
    },
    env,
  );
  expect(stdout).not.toMatch(/Sign in/);
});
