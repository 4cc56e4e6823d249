// The story of docs/reach.md as a test: an app of a device is opened to the outside by a tunnel, and to another device by a mesh route. Real gateway and agents.
import { afterAll, beforeAll, expect, test } from "vitest";
import { createSandbox, runToEnd, type Sandbox, startGatewayProcess } from "../../flows/processes.ts";
import { freePort } from "../../kit/net/free-port.ts";
import { FIVE_MINUTES, REACH_AN_APP, stepsOf } from "../walkthroughs.ts";

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await createSandbox();
});
afterAll(() => sandbox.remove());

const MARK = "--- next step ---";
const TITLE = "<h1>At the shop</h1>";
const PORTS = "port=8704 socks=1080 forward=8705";

test("a new user opens an app to members, to everybody, and to another device", { timeout: 240_000 }, async () => {
  const [start = "", bootstrap = ""] = await stepsOf(FIVE_MINUTES);
  const steps = await stepsOf(REACH_AN_APP);
  const script = ["set -euo pipefail", bootstrap, `home=${sandbox.dir}`, ...steps.map((step) => `echo '${MARK}'\n${step}`)].join("\n");
  expect(script).toContain(PORTS);
  await startGatewayProcess({ ...sandbox.env, EDGE_PORT: String(await freePort()) }, start.trim().split(" "));
  const free = script.replace(PORTS, `port=${await freePort()} socks=0 forward=${await freePort()}`);
  const quiet = free.replace(" &\n", ` >${sandbox.dir}/agent.log 2>&1 &\n`);
  const { code, stdout, stderr } = await runToEnd(["bash", "-c", quiet], { env: sandbox.env, withinMs: 200_000 });
  expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });

  const [, , , members, everybody, device] = stdout.split(MARK);
  expect(members?.trim().split("\n")).toEqual(["401", TITLE]);
  const [opened, shown, stopped, gone] = everybody?.trim().split("\n") ?? [];
  expect([opened, stopped].map((text) => JSON.parse(text ?? "{}").data)).toMatchObject([{ access: { mode: "public" } }, { status: "stopped" }]);
  expect([shown, gone]).toEqual([TITLE, "404"]);
  expect(device).toContain(TITLE);
});
