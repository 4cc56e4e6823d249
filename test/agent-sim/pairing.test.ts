// How a device pairs itself: the fields of the API, patience with limits, a new code when the old one is used up.
import { createServer, type Server } from "node:http";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { pairDevice } from "../../agent-sim/agent/index.ts";
import { OWN_HEADERS } from "./fake-gateway.ts";

interface Answer {
  readonly status: number;
  readonly body: unknown;
  readonly retryAfter?: string;
  readonly isForeign?: true;
}
let server: Server;
let url = "";
let answers: Answer[];
let requests: string[];

beforeEach(async () => {
  requests = [];
  server = createServer(async (request, response) => {
    let sent = "";
    for await (const chunk of request) sent += String(chunk);
    requests.push(`${request.method} ${request.url} ${sent}`);
    const { status, body, retryAfter, isForeign } = answers.shift() ?? { status: 500, body: {} };
    response
      .writeHead(status, { ...(isForeign ? { "content-type": "text/html" } : OWN_HEADERS), ...(retryAfter === undefined ? {} : { "retry-after": retryAfter }) })
      .end(typeof body === "string" ? body : JSON.stringify({ success: false, ...(body as object) }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  url = `http://127.0.0.1:${address.port}`;
});
afterEach(() => new Promise((resolve) => server.close(resolve)));

const code = (pairing_code: string): Answer => ({
  status: 201,
  body: { success: true, data: { pairing_code, expires_at: "2026-01-02T00:00:00Z", portal_url: "http://x" } },
});
const activated: Answer = {
  status: 201,
  body: {
    success: true,
    data: {
      device_id: "dev_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R",
      agent_id: "agt_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R",
      tenant_id: "ten_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R",
      shared_secret: "s3cret",
      fingerprint: "fingerprint-1",
    },
  },
};
const pair = () => pairDevice({ url, enrollmentToken: "tok", fingerprint: "fingerprint-1", name: "edge-1" });

test("the agent asks for a code, activates it and receives its identity", async () => {
  answers = [code("AAAA-BBBB"), activated];
  expect(await pair()).toEqual({
    deviceId: "dev_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R",
    agentId: "agt_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R",
    tenantId: "ten_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R",
    secret: "s3cret",
    fingerprint: "fingerprint-1",
  });
  expect(requests).toEqual([
    'POST /v1/pairing/initiate {"device_fingerprint":"fingerprint-1","platform":"simulator","device_name":"edge-1"}',
    'POST /v1/pairing/auto-activate {"enrollment_token":"tok","pairing_code":"AAAA-BBBB"}',
  ]);
});
test("the agent waits out a rate limit", async () => {
  answers = [{ status: 429, body: { code: "RATE_LIMIT_EXCEEDED" }, retryAfter: "1" }, code("AAAA-BBBB"), activated];
  const timers = vi.spyOn(globalThis, "setTimeout");
  await pair();
  const waits = timers.mock.calls.map(([, ms]) => Number(ms));
  timers.mockRestore();
  expect(waits.filter((ms) => ms >= 1_000 && ms < 2_000)).toHaveLength(1);
});
test("the agent asks for a new code if an attempt without an answer used up the old one", async () => {
  answers = [code("AAAA-BBBB"), { status: 409, body: { code: "PAIRING_ALREADY_ACTIVATED" } }, code("CCCC-DDDD"), activated];
  expect((await pair()).secret).toBe("s3cret");
  expect(requests.at(-1)).toContain("CCCC-DDDD");
});
test("a refused pairing fails with its code and is not retried", async () => {
  answers = [code("AAAA-BBBB"), { status: 401, body: { code: "ENROLLMENT_TOKEN_INVALID" } }];
  await expect(pair()).rejects.toThrow(/401 ENROLLMENT_TOKEN_INVALID/);
  expect(requests).toHaveLength(2);
});

test.each<readonly [string, Answer]>([
  ["400 of a proxy", { status: 400, body: "<html>Bad Request</html>", isForeign: true }],
  ["422 of a proxy", { status: 422, body: { code: "ENROLLMENT_TOKEN_INVALID" }, isForeign: true }],
  ["201 of a captive portal", { status: 201, body: "<html>Welcome</html>", isForeign: true }],
  ["an empty 200 under the gateway's header", { status: 200, body: "" }],
])("%s is no answer to a pairing: the agent goes on", async (_, answer) => {
  answers = [answer, code("AAAA-BBBB"), answer, activated];
  expect((await pair()).secret).toBe("s3cret");
  expect(requests).toHaveLength(4);
});
