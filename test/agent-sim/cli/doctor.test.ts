// `mooring-agent doctor`: each planted fault is named, with what to do, and a machine without a fault has none.
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { diagnose, findingLines } from "../../../agent-sim/cli/doctor.ts";
import { identityPath } from "../../../agent-sim/cli/identity-file.ts";
import { type MachineSettings, resolveSettings } from "../../../agent-sim/cli/settings.ts";
import { serveStatus } from "../../../agent-sim/cli/status-socket.ts";
import { type Authority, createAuthority, type Issued } from "../../kit/net/certificates.ts";
import { agentStatus } from "./agent-status.ts";

let folder: string;
let programs: string;
let gateway: Server;
let url: string;
let answers: Record<string, RequestListener>;
const closing: (() => void)[] = [];

const envelope = (data: object, success = true) => JSON.stringify({ success, ...(success ? { data } : data), meta: { timestamp: new Date().toISOString() } });
const own =
  (status: number, body: string): RequestListener =>
  (_request, response) =>
    void response.writeHead(status, { "content-type": "application/json", "x-svc-sig-versions": "1,2" }).end(body);
const page =
  (status: number): RequestListener =>
  (_request, response) =>
    void response.writeHead(status, { "content-type": "text/html" }).end("<html>welcome</html>");

const listen = async (server: Server): Promise<number> => {
  server.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  closing.push(() => server.close());
  return (server.address() as AddressInfo).port; // as: it listens on a port
};

let authority: Authority;
let issued: Issued;
beforeAll(async () => {
  authority = await createAuthority();
  issued = await authority.issue("gateway");
});
afterAll(() => authority.remove());

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "doctor-"));
  programs = join(folder, "programs");
  await mkdir(programs);
  answers = {
    "/v1/health": own(200, envelope({ status: "healthy" })),
    "/v1/agent/me": own(200, envelope({ serverTime: new Date().toISOString() })),
    "/v1/agent/connect": own(401, envelope({ code: "UNAUTHENTICATED", error: "sign it" }, false)),
  };
  gateway = createServer((request, response) => (answers[request.url ?? ""] ?? own(404, "{}"))(request, response));
  gateway.on("upgrade", (request, socket) => {
    const response = new (class {
      head = "";
      writeHead(status: number, headers: Record<string, string>) {
        this.head = `HTTP/1.1 ${status} X\r\n${Object.entries(headers)
          .map(([name, value]) => `${name}: ${value}\r\n`)
          .join("")}connection: close\r\n\r\n`;
        return this;
      }
      end(body: string) {
        socket.end(this.head + body);
      }
    })();
    answers[request.url ?? ""]?.(request, response as never); // as: these two methods
  });
  url = `http://127.0.0.1:${await listen(gateway)}`;
  await paired();
  await program("docker", 'case "$1 $2" in "version "*) echo 28.2.2 ;; *) echo 2.30.0 ;; esac');
  await program("restic", "echo restic 0.16.4");
});
afterEach(async () => {
  for (const close of closing.splice(0)) close();
  await rm(folder, { recursive: true });
});

const program = (name: string, text: string) => writeFile(join(programs, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
const paired = (more: object = {}) =>
  writeFile(
    identityPath(folder),
    JSON.stringify({
      device_id: "dev_1",
      agent_id: "agt_1",
      tenant_id: "ten_1",
      shared_secret: "s".repeat(32),
      connect: { url: `${url.replace("http", "ws")}/v1/agent/connect` },
      ...more,
    }),
    { mode: 0o600 },
  );
const runs = (state = "ready") => {
  const status = () => agentStatus(url, state);
  const server = serveStatus(
    folder,
    { status, tail: async () => [], follow: () => Readable.from([]), restart: async () => Promise.reject(new Error("no app")) },
    () => undefined,
  );
  closing.push(() => server?.close());
};

const look = async (differences: Partial<MachineSettings> = {}, env: NodeJS.ProcessEnv = {}) => {
  const { settings } = resolveSettings({ url, data: folder, host: "compose" }, { uid: null, env: { MOORING_AGENT_CONFIG: join(folder, "none.yaml") } });
  const findings = await diagnose({ ...settings, ...differences }, { uid: process.getuid?.() ?? null, env: { PATH: programs, ...env } });
  return { findings, of: (check: string) => findings.find((finding) => finding.check === check) };
};

describe("the doctor", () => {
  test("finds nothing on a machine that works, and says so in a line for each check", async () => {
    runs();
    const { findings } = await look();
    expect(findings.filter(({ verdict }) => verdict !== "ok").map(({ check }) => check)).toEqual(["tls"]);
    expect(findingLines(findings).match(/^(?:ok|warning|WRONG)/gm)).toHaveLength(12);
  });

  test.each<
    readonly [fault: string, check: string, seen: RegExp, advice: RegExp, plant: () => ReturnType<typeof look> | Promise<Awaited<ReturnType<typeof look>>>]
  >([
    ["a name that nobody knows", "name", /ENOTFOUND|EAI_AGAIN/, /spelling.*DNS/, () => look({ url: "http://gateway.invalid" })],
    [
      "a certificate of an unknown authority",
      "tls",
      /certificate|issuer/,
      /--ca/,
      async () => {
        const server = createTlsServer({ cert: await readFile(issued.certFile), key: await readFile(issued.keyFile) });
        return look({ url: `https://127.0.0.1:${await listen(server)}` });
      },
    ],
    ["a gateway that does not listen", "gateway", /ECONNREFUSED/, /captive portal/, () => look({ url: "http://127.0.0.1:1" })],
    [
      "a captive portal",
      "gateway",
      /something else than the gateway answered 200/,
      /captive portal/,
      () => {
        answers["/v1/health"] = page(200);
        return look();
      },
    ],
    [
      "a clock that is wrong",
      "clock",
      /3600 s ahead of/,
      /time synchronization/,
      () => {
        answers["/v1/health"] = own(200, JSON.stringify({ success: true, data: {}, meta: { timestamp: new Date(Date.now() - 3_600_000).toISOString() } }));
        return look();
      },
    ],
    [
      "a proxy that knows no upgrades",
      "websocket",
      /answered 502/,
      /let the proxy pass WebSocket upgrades/,
      () => {
        answers["/v1/agent/connect"] = page(502);
        return look();
      },
    ],
    [
      "a proxy that takes the upgrade out",
      "websocket",
      /takes the upgrade out/,
      /Upgrade and Connection/,
      () => {
        answers["/v1/agent/connect"] = own(426, envelope({ code: "PROTOCOL_UNSUPPORTED" }, false));
        return look();
      },
    ],
    [
      "a machine that is not paired",
      "identity",
      /not paired/,
      /mooring-agent pair/,
      async () => {
        await rm(identityPath(folder));
        return look();
      },
    ],
    [
      "a secret that others may read",
      "identity",
      /others may read it/,
      /./,
      async () => {
        await chmod(identityPath(folder), 0o644);
        return look();
      },
    ],
    [
      "a device that was removed",
      "signature",
      /401 UNAUTHENTICATED unknown_agent/,
      /see the device in the console/,
      () => {
        answers["/v1/agent/me"] = own(401, envelope({ code: "UNAUTHENTICATED", details: { reason: "unknown_agent" } }, false));
        return look();
      },
    ],
    [
      "a Docker Engine that does not answer",
      "docker",
      /no Docker Engine/,
      /group docker/,
      async () => {
        await program("docker", "exit 1");
        return look();
      },
    ],
    [
      "no restic",
      "restic",
      /takes no backups/,
      /install restic/,
      async () => {
        await rm(join(programs, "restic"));
        return look();
      },
    ],
    ["a folder that is not there", "disk", /ENOENT/, /create the folder/, () => look({ data: join(folder, "nothing") })],
    ["an agent that does not run", "agent", /no agent runs/, /systemctl start/, () => look()],
    [
      "an agent that is not connected",
      "agent",
      /not connected/,
      /mooring-agent status/,
      () => {
        runs("waiting");
        return look();
      },
    ],
  ])("names %s", async (_fault, check, seen, advice, plant) => {
    const finding = (await plant()).of(check);
    expect(finding).toMatchObject({ seen: expect.stringMatching(seen), advice: expect.stringMatching(advice) });
    expect(["wrong", "warning"]).toContain(finding?.verdict);
  });
});
