// What people visit tunnels with: curl, Python, ws and Chromium read, send, listen and talk through one, over TLS, and find a custom domain with its certificate.

import { execFile } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import WebSocket, { WebSocketServer } from "ws";
import { built } from "../../flows/processes.ts";
import { type Chromium, openChromium } from "../../kit/browser/chromium.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { askAs } from "../../kit/gateway/ask.ts";
import { type Caller, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";
import { type AcmeServer, type NameServer, startAcmeServer, startNameServer } from "../../kit/net/acme.ts";
import { createAuthority } from "../../kit/net/certificates.ts";
import { type Child, plainEnv, startChild } from "../../kit/net/children.ts";
import { freePort } from "../../kit/net/free-port.ts";

const run = promisify(execFile);
const BODY = randomBytes(2_097_152);
const SHA = createHash("sha256").update(BODY).digest("hex");
/** Debian's, which has the package websockets. */
const PYTHON = "/usr/bin/python3";

let authority: Awaited<ReturnType<typeof createAuthority>>;
let [dns, acme] = [] as unknown as [NameServer & { close(): Promise<void> }, AcmeServer];
let world: World;
let chromium: Chromium;
let tenant: TestTenant;
let owner: Caller;
let agent: Child;
let [hostname, tunnelId] = ["", ""];

/** Streams of events that wait until their reader says that it has seen the first. */
const waiting = new Map<string, ServerResponse>();
const sockets = new WebSocketServer({ noServer: true, perMessageDeflate: true });
const answer = async (message: IncomingMessage, response: ServerResponse): Promise<void> => {
  const { pathname, searchParams } = new URL(message.url ?? "/", "http://origin");
  const reader = searchParams.get("reader") ?? "";
  if (pathname === "/upload") {
    const hash = createHash("sha256");
    for await (const chunk of message) hash.update(chunk);
    response.end(hash.digest("hex"));
  } else if (pathname === "/download") response.setHeader("Content-Type", "application/octet-stream").end(BODY);
  else if (pathname === "/events") {
    response.setHeader("Content-Type", "text/event-stream").write("data: first\n\n");
    waiting.set(reader, response);
  } else if (pathname === "/seen") {
    waiting.get(reader)?.end("data: second\n\n");
    response.end("thanks");
  } else response.setHeader("Content-Type", "text/html").end(`<h1>at home</h1>`);
};
const origin = createServer((message, response) => void answer(message, response));
origin.on("upgrade", (message, socket, head) =>
  sockets.handleUpgrade(message, socket, head, (peer) => peer.on("message", (data, binary) => peer.send(data, { binary }))),
);

const ask = (method: string, path: string, body?: object) => askAs(world, owner, method, path, body);
const port = (): number => world.app.edgePort();
const url = (scheme = "https"): string => `${scheme}://${hostname}:${port()}`;

beforeAll(async () => {
  origin.listen(0, "127.0.0.1");
  await once(origin, "listening");
  authority = await createAuthority();
  const { certFile, keyFile } = await authority.issue("edge", ["*.tunnels.localhost"]);
  await writeFile(join(authority.dir, "body"), BODY);
  dns = await startNameServer();
  const httpPort = await freePort();
  acme = await startAcmeServer({ httpPort, dnsServer: dns.address });
  world = await startWorld({
    ...{ EDGE_TLS_CERT_FILE: certFile, EDGE_TLS_KEY_FILE: keyFile, EDGE_HTTP_PORT: String(httpPort), TUNNEL_DOMAIN: "tunnels.localhost" },
    DNS_SERVERS: dns.address,
    ...{ ACME_DIRECTORY_URL: acme.directoryUrl, ACME_CA_FILE: acme.caFile, ACME_EMAIL: "ops@example.com" },
  });
  chromium = await openChromium(world);
  tenant = await world.tenant();
  owner = await tenant.user("owner");
  const [device] = (await world.call(tenant.apiKey, "POST", "/v1/devices/provision", { body: { count: 1 } })).body.data;
  const identity = join(authority.dir, "device.json");
  await writeFile(identity, JSON.stringify(device));
  // A process of its own: an authority that is not public has to be named at the start.
  const words = [built("agent-sim/main.js"), "agent", "--identity", identity, "--seconds", "600", "--url", world.url];
  agent = startChild({ command: process.execPath, words, env: { ...plainEnv(), NODE_EXTRA_CA_CERTS: authority.caFile } });
  const made = await ask("POST", `/devices/${device.device_id}/tunnels`, {
    name: "shop",
    targetPort: (origin.address() as AddressInfo).port,
    access: { mode: "public" },
  });
  ({ hostname, tunnelId } = made);
  await eventually(async () => expect(await ask("GET", `/tunnels/${tunnelId}`)).toMatchObject({ status: "active" }));
}, 60_000);
afterAll(async () => {
  await chromium?.close();
  await agent?.stop();
  await world?.close();
  origin.closeAllConnections();
  origin.close();
  await Promise.all([acme?.close(), dns?.close(), authority?.remove()]);
});

const curl = async (...words: readonly string[]): Promise<string> => (await run("curl", ["-sS", "--cacert", authority.caFile, ...words])).stdout;

test("curl: a page over HTTP/1.1 and HTTP/2, an upload, and events one by one", async () => {
  for (const [version, word] of [
    ["1.1", "--http1.1"],
    ["2", "--http2"],
  ] as const)
    expect(await curl(word, "-w", " %{http_version}", `${url()}/`)).toBe(`<h1>at home</h1> ${version}`);
  for (const word of ["--http1.1", "--http2"]) expect(await curl(word, "-T", join(authority.dir, "body"), `${url()}/upload`)).toBe(SHA);
  const listen = `curl -sSN --cacert ${authority.caFile} '${url()}/events?reader=curl' | while read -r line; do
    echo "$line"; [ "$line" != 'data: first' ] || curl -sS -o /dev/null --cacert ${authority.caFile} '${url()}/seen?reader=curl'; done`;
  expect((await run("bash", ["-c", listen])).stdout.split("\n").filter((line) => line !== "")).toEqual(["data: first", "data: second"]);
});

test("Python: a page, an upload, events and a WebSocket", async () => {
  const script = `
import asyncio, http.client, ssl, sys, websockets
host, port, ca, path = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
context = ssl.create_default_context(cafile=ca)
context.check_hostname = False
def ask(method, target, body=None):
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=20)
    connection.request(method, target, body=body, headers={"Host": host})
    return connection.getresponse()
print(ask("GET", "/").read().decode())
print(ask("POST", "/upload", open(path, "rb")).read().decode())
events = ask("GET", "/events?reader=python")
print(events.readline().decode().strip())
ask("GET", "/seen?reader=python").read()
print(events.read().decode().strip())
async def talk():
    async with websockets.connect(f"wss://{host}:{port}/", host="127.0.0.1", ssl=context, max_size=None) as socket:
        await socket.send("hello")
        print(await socket.recv())
        await socket.send(open(path, "rb").read())
        print(len(await socket.recv()))
asyncio.run(talk())
`;
  const { stdout } = await run(PYTHON, ["-c", script, hostname, String(port()), authority.caFile, join(authority.dir, "body")]);
  expect(stdout.trim().split("\n")).toEqual(["<h1>at home</h1>", SHA, "data: first", "data: second", "hello", String(BODY.length)]);
});

test("ws: texts, and two mebibytes that are compressed on the way", async () => {
  const socket = new WebSocket(`wss://127.0.0.1:${port()}/`, { headers: { host: `${hostname}:${port()}` }, ca: authority.ca });
  await once(socket, "open");
  expect(socket.extensions).toContain("permessage-deflate");
  for (const sent of ["hello", BODY]) {
    const got = once(socket, "message");
    socket.send(sent);
    expect(Buffer.from(sent).equals((await got)[0] as Buffer)).toBe(true);
  }
  socket.close();
  expect((await once(socket, "close"))[0]).toBe(1005);
});

/** A text, because what the tests' compiler makes of a function does not run in a page. */
const IN_THE_PAGE = `(async () => {
  const bytes = await (await fetch("/download")).arrayBuffer();
  const upload = await (await fetch("/upload", { method: "POST", body: bytes })).text();
  const events = [];
  await new Promise((resolve, reject) => {
    const source = new EventSource("/events?reader=chromium");
    source.onmessage = ({ data }) => {
      events.push(data);
      if (data === "first") void fetch("/seen?reader=chromium");
      else resolve(source.close());
    };
    source.onerror = () => reject(new Error("the stream of events broke"));
  });
  const said = await new Promise((resolve, reject) => {
    const socket = new WebSocket("wss://" + location.host + "/");
    socket.onopen = () => socket.send("hello");
    socket.onmessage = ({ data }) => resolve(data, socket.close());
    socket.onerror = () => reject(new Error("the WebSocket broke"));
  });
  return { length: bytes.byteLength, upload, events, said };
})()`;

/** Chromium ends all its connections over HTTP/2, on loopback too, when a container of another test gets its network. Nothing else is forgiven. */
const unlessNetworkChanges = async <T>(page: Page, call: () => Promise<T>): Promise<T> => {
  const changed = page.waitForEvent("requestfailed", { predicate: (request) => request.failure()?.errorText === "net::ERR_NETWORK_CHANGED" });
  changed.catch(() => undefined);
  return call().catch((error: unknown) =>
    changed.then(
      () => unlessNetworkChanges(page, call),
      () => Promise.reject(error),
    ),
  );
};

test("Chromium: a page, an upload, a download, EventSource and WebSocket", async () => {
  const { page, close } = await chromium.visitor({ ignoreHTTPSErrors: true });
  await page.goto(`${url()}/`);
  await page.getByRole("heading", { name: "at home" }).waitFor();
  const seen = await unlessNetworkChanges(page, () => page.evaluate(IN_THE_PAGE));
  expect(seen).toEqual({ length: BODY.length, upload: SHA, events: ["first", "second"], said: "hello" });
  await close();
});

test("a custom domain is found with the certificate that the authority gave it", async () => {
  const domain = await ask("POST", "/custom-domains", { hostname: "shop.example.com", target: { kind: "tunnel", id: tunnelId } });
  await dns.a("domains.tunnels.localhost", "127.0.0.1");
  await dns.cname(domain.hostname, "domains.tunnels.localhost");
  await dns.txt(domain.verification.name, domain.verification.value);
  await ask("POST", `/custom-domains/${domain.domainId}/verify`);
  await eventually(async () => expect(await ask("GET", `/custom-domains/${domain.domainId}`)).toMatchObject({ status: "active" }), { boundMs: 60_000 });
  const roots = join(authority.dir, "roots.pem");
  await writeFile(roots, await acme.root());
  const visited = run("curl", ["-sS", "--cacert", roots, "--resolve", `shop.example.com:${port()}:127.0.0.1`, `https://shop.example.com:${port()}/`]);
  expect((await visited).stdout).toBe("<h1>at home</h1>");
});
