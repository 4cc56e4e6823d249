// The story of docs/backups.md as a test: back up, lose the data, restore it, restore it on another device, and by plain restic. Real gateway, agents, restic.
import { afterAll, beforeAll, expect, test } from "vitest";
import { createSandbox, runToEnd, type Sandbox, startGatewayProcess } from "../../flows/processes.ts";
import { freePort } from "../../kit/net/free-port.ts";
import { BACK_UP_AN_APP, FIVE_MINUTES, stepsOf } from "../walkthroughs.ts";

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await createSandbox();
});
afterAll(() => sandbox.remove());

const MARK = "--- next step ---";

test("a new user backs an app up, loses its data, and has it again: on the device, on another one, and without us", { timeout: 240_000 }, async () => {
  const [start = "", bootstrap = ""] = await stepsOf(FIVE_MINUTES);
  const steps = await stepsOf(BACK_UP_AN_APP);
  const port = await freePort();
  const script = ["set -euo pipefail", bootstrap, `home=${sandbox.dir}`, ...steps.map((step) => `echo '${MARK}'\n${step}`)].join("\n");
  expect(script).toContain("port=8701");
  await startGatewayProcess({ ...sandbox.env, EDGE_PORT: String(await freePort()) }, start.trim().split(" "));
  const quiet = script.replace("port=8701", `port=${port}`).replace(" &\n", ` >${sandbox.dir}/agent.log 2>&1 &\n`);
  const { code, stdout, stderr } = await runToEnd(["bash", "-c", quiet], { env: sandbox.env, withinMs: 200_000 });
  expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });

  const [, , backedUp, downloaded, restored, moved, alone] = stdout.split(MARK);
  expect(backedUp).toContain('"status":"completed"');
  expect(downloaded).toContain("volumes/data/keys.json");
  expect(downloaded).toContain("app.json");
  expect(restored).toContain('"status":"completed"');
  expect(restored).toContain("./data/keys.json: OK");
  expect(restored).toContain("two bottles");
  expect(moved).toContain('"status":"completed"');
  expect(moved).toContain("two bottles");
  expect(alone).toContain("./data/keys.json: OK");
});
