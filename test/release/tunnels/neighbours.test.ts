// 3,000 visitors who leave and 20 who do not read cost the others nothing: what these have open goes on over the same carrier.

import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import WebSocket, { WebSocketServer } from "ws";
import { eventually } from "../../kit/checks/eventually.ts";
import { askAs } from "../../kit/gateway/ask.ts";
import { type SimulatedDevice, startSimulatedDevice } from "../../kit/gateway/simulated-device.ts";
import { type Caller, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";

const LEAVERS = 3_000;
const AT_ONCE = 30;
const STALLED = 20;
const PIECE = randomBytes(65_536);
const PIECES = 320;
const sha = (parts: Iterable<Uint8Array>): string => {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest("hex");
};
const SHA = sha(Array.from({ length: PIECES }, () => PIECE));

let world: World;
let tenant: TestTenant;
let owner: Caller;
let machine: SimulatedDevice;
let [hostname, tunnelId] = ["", ""];

const flood = (response: ServerResponse): void => {
  while (!response.destroyed && response.write(PIECE));
  response.once("drain", () => flood(response));
};
const sockets = new WebSocketServer({ noServer: true });
const origin = createServer((message: IncomingMessage, response) => {
  if (message.url === "/flood") return flood(response);
  if (message.url === "/hold") return void response.write("held");
  if (message.url === "/whole") {
    for (let n = 0; n < PIECES; n += 1) response.write(PIECE);
    return void response.end();
  }
  response.end("hello");
});
origin.on("upgrade", (message, socket, head) =>
  sockets.handleUpgrade(message, socket, head, (peer) => peer.on("message", (data, binary) => peer.send(data, { binary }))),
);

const ask = (method: string, path: string, body?: object) => askAs(world, owner, method, path, body);
let visitors = 0;
/** Each visitor has an address of their own, because an address has few places. */
const nextAddress = (): string => {
  visitors += 1;
  return `127.0.${1 + (visitors % 200)}.${1 + (Math.floor(visitors / 200) % 200)}`;
};
const visit = async (path: string): Promise<IncomingMessage> => {
  const port = world.app.edgePort();
  const sent = request({ host: "127.0.0.1", localAddress: nextAddress(), port, path, agent: false, headers: { host: `${hostname}:${port}` } });
  sent.end();
  return (await once(sent, "response"))[0] as IncomingMessage;
};
/** Leaves in the middle of the answer. */
const leave = async (): Promise<void> => {
  const response = await visit("/hold");
  await once(response, "data");
  response.on("error", () => undefined).destroy();
};
const carriers = async (): Promise<readonly string[]> => (await ask("GET", `/tunnels/${tunnelId}/connections`)).map(({ id }: { id: string }) => id);

beforeAll(async () => {
  origin.listen(0, "127.0.0.1");
  await once(origin, "listening");
  world = await startWorld();
  tenant = await world.tenant();
  owner = await tenant.user("owner");
  machine = await startSimulatedDevice(world, tenant);
  ({ tunnelId, hostname } = await ask("POST", `/devices/${machine.device.deviceId}/tunnels`, {
    targetPort: (origin.address() as AddressInfo).port,
    access: { mode: "public" },
  }));
  await eventually(async () => expect(await ask("GET", `/tunnels/${tunnelId}`)).toMatchObject({ status: "active" }));
});
afterAll(async () => {
  await machine?.stop();
  await world?.close();
  origin.closeAllConnections();
  origin.close();
});

test("a download, a WebSocket and new visitors do not notice them", { timeout: 180_000 }, async () => {
  const before = await carriers();
  expect(before).toHaveLength(1);
  const port = world.app.edgePort();
  const socket = new WebSocket(`ws://127.0.0.1:${port}/`, { headers: { host: `${hostname}:${port}` } });
  await once(socket, "open");
  const slow = await visit("/whole");
  const stalled = await Promise.all(Array.from({ length: STALLED }, () => visit("/flood")));

  let left = 0;
  const lane = async (): Promise<void> => {
    while (left < LEAVERS) {
      left += 1;
      await leave();
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));

  for (let n = 0; n < STALLED; n += 1) expect((await visit("/")).statusCode).toBe(200);
  const echo = once(socket, "message");
  socket.send("still there?");
  expect(String((await echo)[0])).toBe("still there?");
  expect(sha(await slow.toArray())).toBe(SHA);
  expect(await carriers()).toEqual(before);
  for (const response of stalled) response.on("error", () => undefined).destroy();
  socket.close();
});
