// The story of an app, as docs/apps.md tells it: the test takes "Install an app" out of the text and runs it with a real gateway, a real agent and real
// processes.
import { afterAll, beforeAll, expect, test } from "vitest";
import { createSandbox, processesOf, runToEnd, type Sandbox, startGatewayProcess } from "../flows/processes.ts";
import { freePort } from "../kit/net/free-port.ts";
import { FIVE_MINUTES, INSTALL_AN_APP, stepsOf } from "./walkthroughs.ts";

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await createSandbox();
});
afterAll(() => sandbox.remove());

const MARK = "--- next step ---";

interface Answer {
  readonly data: {
    readonly status: string;
    readonly revision: number;
    readonly currentRevision: number;
    readonly configuration: unknown;
    readonly failure: unknown;
    readonly items: readonly { readonly to: string; readonly reason: string | null }[];
  };
}
const answersIn = (text = ""): readonly Answer["data"][] =>
  text.split("\n").flatMap((line) => (line.startsWith('{"success":true') ? [(JSON.parse(line) as Answer).data] : []));

test("a new user installs an app, changes it, breaks it, sees it restored, rolls forward and removes it", { timeout: 120_000 }, async () => {
  const [start = "", bootstrap = ""] = await stepsOf(FIVE_MINUTES);
  const steps = await stepsOf(INSTALL_AN_APP);
  const port = await freePort();
  const script = ["set -euo pipefail", bootstrap, `home=${sandbox.dir}`, ...steps.map((step) => `echo '${MARK}'\n${step}`)].join("\n");
  expect(script).toContain("port=8704");
  await startGatewayProcess(sandbox.env, start.trim().split(" "));
  // The agent goes on when the script has ended, so it must not hold the test's pipe open.
  const { code, stdout, stderr } = await runToEnd(
    ["bash", "-c", script.replace("port=8704", `port=${port}`).replace(" &\n", ` >${sandbox.dir}/agent.log 2>&1 &\n`)],
    {
      env: sandbox.env,
      withinMs: 100_000,
    },
  );
  expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });

  const [, , installed, followed, changed, removed] = stdout.split(MARK);
  const gateway = `http://127.0.0.1:${sandbox.env["PORT"]}`;
  expect(answersIn(installed)).toMatchObject([{ status: "active", currentRevision: 1, failure: null }]);
  expect(installed).toContain(`[{"name":"Gateway","url":"${gateway}/livez","state":"up","uptimePercent":100}]`);

  expect(followed).toContain("GET / 200");

  const atHome = { port, title: "At home", targets: `Gateway=${gateway}/readyz` };
  const failure = {
    reason: "EXITED",
    revision: 3,
    lines: [expect.stringMatching(/STATUS_TARGETS: "no address" is not an http or https address/)],
  };
  const [updating, updated, breaking, restored, timeline] = answersIn(changed);
  expect([updating?.status, breaking?.status]).toEqual(["updating", "updating"]);
  expect(updated).toMatchObject({ status: "active", currentRevision: 2, configuration: atHome, failure: null });
  expect(restored).toMatchObject({ status: "active", revision: 3, currentRevision: 2, configuration: atHome, failure });
  expect(changed).toContain("<h1>At home</h1>");
  const path = ["pending", "queued", "deploying", "active", "updating", "active", "updating", "rolling_back", "active"];
  expect(timeline?.items.map(({ to }) => to)).toEqual(path);

  expect(answersIn(removed).at(-1)).toMatchObject({ status: "active", currentRevision: 4, failure: null });
  expect(removed).toContain("<h1>Better</h1>");
  // The agent's own process lives in another folder; those of the app have ended and left nothing.
  const apps = `${sandbox.dir}/laptop.json.data/apps/`;
  await expect.poll(() => processesOf(apps), { timeout: 20_000 }).toEqual([]);
  await expect
    .poll(() =>
      fetch(`http://127.0.0.1:${port}`).then(
        () => "up",
        () => "down",
      ),
    )
    .toBe("down");
});
