// Receivers that are unwell, through the real client and worker: each attempt ends in time with a code in the log, and is repeated until the receiver is well.
import { readFile } from "node:fs/promises";
import type { Socket } from "node:net";
import { createServer as createTlsServer, type Server } from "node:tls";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../../kit/checks/eventually.ts";
import { type Authority, createAuthority } from "../../kit/net/certificates.ts";
import { type CountingListener, startListener } from "../../kit/net/listeners.ts";
import { RECEIVER_HOST } from "../../kit/net/receiver.ts";
import { type HookOwner, type Hooks, openHooks } from "./kit.ts";

/** Certificates of tests are for this address. */
const TLS_HOST = "127.0.0.1";
const BOUND_MS = 25_000;

let hooks: Hooks;
let known: Authority;
let unknown: Authority;
const closers: (() => unknown)[] = [];
beforeAll(async () => {
  [known, unknown] = await Promise.all([createAuthority(), createAuthority()]);
  hooks = await openHooks(
    { WEBHOOK_ALLOW_CIDRS: `${RECEIVER_HOST}/32,${TLS_HOST}/32`, RATE_LIMIT_STANDARD: "off" },
    { settings: { outbound: { ca: known.ca }, webhooks: { timeoutMs: 5_000 } } },
  );
});
afterAll(async () => {
  await hooks.close();
  await Promise.all(closers.map((close) => close()));
  await Promise.all([known.remove(), unknown.remove()]);
});

type Serve = (socket: Socket) => void;
/** Answers once the JSON has arrived; each call has a connection of its own. */
const answerWell: Serve = (socket) => {
  let got = "";
  socket.on("data", (data) => {
    got += data.toString();
    if (got.endsWith("}")) socket.end("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
  });
};
const write =
  (text: string): Serve =>
  (socket) =>
    void socket.once("data", () => socket.write(text));
/** Writes `text` after `first` as fast as it is read, or at an interval. */
const flood =
  (first: string, text: string, everyMs?: number): Serve =>
  (socket) => {
    const fill = (): void => {
      while (!socket.destroyed && socket.write(text));
    };
    socket.once("data", () => {
      socket.write(first);
      if (everyMs === undefined) {
        socket.on("drain", fill);
        return fill();
      }
      const timer = setInterval(() => socket.write(text), everyMs);
      socket.on("close", () => clearInterval(timer));
    });
  };
const closeAtOnce: Serve = (socket) => void socket.destroy();
const hang: Serve = () => undefined;

const tlsOf = async (authority: Authority): Promise<Server> => {
  const { certFile, keyFile } = await authority.issue("receiver");
  const server = createTlsServer({ cert: await readFile(certFile), key: await readFile(keyFile) }, (socket) => {
    socket.on("error", () => undefined);
    answerWell(socket);
  });
  return server.on("tlsClientError", () => undefined);
};

const subscribeTo = async (owner: HookOwner, { unwell, tls }: { readonly unwell: Serve; readonly tls: Server | null }) => {
  let serve = unwell;
  const well: Serve = tls === null ? answerWell : (socket) => void tls.emit("connection", socket);
  const at: CountingListener = await startListener(tls === null ? RECEIVER_HOST : TLS_HOST, (socket) => serve(socket));
  closers.push(at.close);
  const url = `${tls === null ? "http" : "https"}://${at.host}:${at.port}/hook`;
  const { webhookId } = await hooks.subscribe(owner, { url });
  const recover = (): void => {
    serve = well;
  };
  return { webhookId, at, recover };
};
const logOf = async (owner: HookOwner, webhookId: string) => {
  const [delivery] = await hooks.deliveries(owner, webhookId);
  return (await hooks.call(owner, `GET /webhooks/${webhookId}/deliveries/${delivery?.deliveryId}`)).data;
};

test("each failure is bounded, has its code in the log, and is repeated until the receiver is well; one that hangs delays no other", async () => {
  const owner = await hooks.newOwner();
  const [good, forged] = [await tlsOf(known), await tlsOf(unknown)];
  const OK = "HTTP/1.1 200 OK\r\n";
  const CHUNKED = "transfer-encoding: chunked\r\n\r\n";
  const chunk = `1000\r\n${"x".repeat(0x1000)}\r\n`;
  const cases: readonly (readonly [what: string, code: string, unwell: Serve, tls?: Server])[] = [
    ["answers too late", "TIMEOUT", hang],
    ["dribbles its headers", "TIMEOUT", flood(OK, "a: b\r\n", 200)],
    ["dribbles its body", "TIMEOUT", flood(`${OK}content-length: 9999\r\n\r\n`, "x", 200)],
    ["sends an error without end", "HTTP_STATUS", flood(`HTTP/1.1 500 Oops\r\n${CHUNKED}`, chunk)],
    ["sends a giant header", "TOO_LARGE", write(`${OK}a: ${"b".repeat(20_000)}\r\n\r\n`)],
    ["sends headers without end", "TOO_LARGE", flood(OK, `a: ${"b".repeat(1_000)}\r\n`)],
    ["speaks no HTTP", "PROTOCOL", write("220 mail.example ESMTP\r\n")],
    ["closes at once", "CONNECT", closeAtOnce],
    ["closes within its body", "CONNECT", (socket) => void socket.once("data", () => socket.end(`${OK}content-length: 10\r\n\r\nab`))],
    ["speaks no TLS", "TLS", write("HTTP/1.1 400 Bad Request\r\n\r\n"), good],
    ["has a certificate of nobody", "TLS", (socket) => void forged.emit("connection", socket), good],
  ];
  const all = [];
  for (const [what, code, unwell, tls = null] of cases) all.push({ what, code, ...(await subscribeTo(owner, { unwell, tls })) });
  const endless = await subscribeTo(owner, { unwell: flood(`${OK}${CHUNKED}`, chunk), tls: null });
  const healthy = await hooks.subscribe(owner);

  await hooks.makeFleet(owner);
  // What succeeds does so while others still hang.
  await hooks.arrived(healthy.path, 1, 5_000);
  await eventually(async () => expect(await logOf(owner, endless.webhookId)).toMatchObject({ status: "succeeded" }));
  expect((await logOf(owner, endless.webhookId)).attempts[0].responseBody).toHaveLength(4_096);
  for (const { what, code, webhookId } of all.filter((each) => each.code === "TIMEOUT"))
    expect([what, code, await logOf(owner, webhookId)]).toMatchObject([what, code, { status: "pending", attemptCount: 0 }]);

  for (const { what, code, webhookId, at } of all) {
    await eventually(async () => expect([what, (await logOf(owner, webhookId)).status]).toEqual([what, "retrying"]), BOUND_MS);
    const { attempts } = await logOf(owner, webhookId);
    // The first repetition comes after about five seconds, so some have had two.
    for (const [at, attempt] of attempts.entries()) expect([what, attempt]).toMatchObject([what, { number: at + 1, trigger: "scheduled", error: { code } }]);
    await eventually(() => expect([what, at.open()]).toEqual([what, 0]));
  }

  for (const { recover } of all) recover();
  for (const { what, webhookId } of all)
    await eventually(async () => {
      const { status, attempts } = await logOf(owner, webhookId);
      // An attempt that was under way has failed since.
      if (status === "retrying") await hooks.hurry(webhookId);
      expect([what, status, attempts.at(-1)]).toMatchObject([what, "succeeded", { statusCode: 200, error: null }]);
      expect(attempts.length).toBeGreaterThan(1);
    });
}, 120_000);
