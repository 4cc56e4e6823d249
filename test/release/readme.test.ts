// README is true: the test takes its first five minutes, and the second person of docs/access.md, out of the text and runs them
// in a fresh folder against a gateway from `npm start`.
import { readdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createSandbox, ROOT, runToEnd, type Sandbox, startGatewayProcess } from "../flows/processes.ts";
import { FIVE_MINUTES, SECOND_PERSON, stepsOf } from "./walkthroughs.ts";

const LINKED: readonly string[] = ["package.json", "node_modules", "server", "dist"];

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await createSandbox();
  for (const name of LINKED) await symlink(join(ROOT, name), join(sandbox.dir, name));
});
afterAll(() => sandbox.remove());

const MARK = "--- next step ---";
/** Shorter runs than README's, because a test has no minute to spare. */
const BRIEF: readonly (readonly [long: string, short: string])[] = [
  ["--agents 1000 --duration 60s --commands-per-second 200", "--agents 20 --duration 2s --commands-per-second 20 --json --quiet"],
  ["--seconds 10", "--seconds 4"],
];

/** The steps of both walkthroughs, unchanged but for the shorter runs. */
const briefSteps = async (): Promise<readonly string[]> => {
  const steps = [...(await stepsOf(FIVE_MINUTES)), ...(await stepsOf(SECOND_PERSON))];
  for (const [long] of BRIEF) if (!steps.some((step) => step.includes(long))) throw new Error(`README no longer contains ${long}`);
  return steps.map((step) => BRIEF.reduce((brief, [long, short]) => brief.replace(long, short), step));
};

test("the first five minutes and the second person work as written, twice", { timeout: 300_000 }, async () => {
  const [start = "", ...steps] = await briefSteps();
  expect(start.trim()).toBe("npm start");
  await startGatewayProcess(sandbox.env, start.trim().split(" "), sandbox.dir);

  const script = ["set -euo pipefail", ...steps.map((step) => `${step}\necho; echo '${MARK}'`)].join("\n");
  const { code, stdout, stderr } = await runToEnd(["bash", "-c", script], { env: sandbox.env, cwd: sandbox.dir, withinMs: 140_000 });
  expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });

  // The steps leave nothing in the checkout, and they work a second time.
  const left = (await readdir(sandbox.dir)).filter((name) => !LINKED.includes(name) && name !== "data");
  expect(left).toEqual([]);
  const again = await runToEnd(["bash", "-c", script], { env: sandbox.env, cwd: sandbox.dir, withinMs: 140_000 });
  expect(again.stdout).toMatch(/runs ping[\s\S]*"status":"succeeded"/);

  const [, paired = "", queued = "", answered = "", fleet = "", people = ""] = stdout.split(MARK);
  expect(JSON.parse(paired)).toMatchObject({ success: true, data: { device_id: expect.stringMatching(/^dev_/) } });
  expect(queued).toMatch(/"blockedBy"|offline/);
  expect(queued).not.toContain('"succeeded"');
  expect(answered).toMatch(/runs ping[\s\S]*"status":"succeeded"/);
  const summary = JSON.parse(fleet.slice(fleet.indexOf("{"))) as { ok: boolean; agents: number; commands: { accepted: number; terminal: number } };
  expect(summary).toMatchObject({ ok: true, agents: 20 });
  expect(summary.commands.terminal).toBe(summary.commands.accepted);

  const [listed, counted, hidden, signedOut, after] = people
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  const { device_id: deviceId } = JSON.parse(paired).data;
  expect(listed).toMatchObject({ data: [{ deviceId, tags: ["kitchen"] }], meta: { pagination: { total: 1 } } });
  expect(counted).toMatchObject({ data: { total: 1 } });
  expect([hidden.code, hidden.details.deviceId.slice(0, 4), signedOut.success, after.code]).toEqual(["DEVICE_NOT_FOUND", "dev_", true, "UNAUTHORIZED"]);
});
