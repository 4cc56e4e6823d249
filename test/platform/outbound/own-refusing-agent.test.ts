// An agent for libraries that open their own connections: whatever name of this machine they use, an own listener reads no byte of theirs.
import { request } from "node:http";
import { request as requestTls } from "node:https";
import { afterEach, expect, test } from "vitest";
import { createOwnListeners } from "../../../server/platform/outbound/own-listeners.ts";
import { createOwnRefusingAgent } from "../../../server/platform/outbound/own-refusing-agent.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { type CountingListener, startListener } from "../../kit/net/listeners.ts";

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/** Listens on all addresses of the machine, and keeps what arrives. */
const listening = async (): Promise<CountingListener & { readonly read: Buffer[] }> => {
  const read: Buffer[] = [];
  const listener = await startListener("::", (socket) => {
    socket.on("data", (chunk: Buffer) => {
      read.push(chunk);
      socket.end("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    });
  });
  closers.push(listener.close);
  return { ...listener, read };
};

/** The status of the answer, or why there is none. */
const answerOf = async (url: string, ownPort: number): Promise<number | string> => {
  const { protocol } = new URL(url);
  const { isOwn } = createOwnListeners({ endpoints: () => [{ host: "0.0.0.0", port: ownPort }] });
  const agent = await createOwnRefusingAgent(protocol, isOwn);
  const answered = new Promise<number | string>((resolve) => {
    const send = protocol === "https:" ? requestTls : request;
    const asked = send(url, { method: "POST", agent }, (answer) => {
      answer.resume();
      resolve(answer.statusCode ?? 0);
    });
    asked.on("error", ({ message }) => resolve(message));
    asked.end("spans");
  });
  return answered.finally(() => agent.destroy());
};

test.each([
  ...["http://127.0.0.1", "http://localhost", "http://[::1]", "http://[::ffff:127.0.0.1]", "http://127.1.2.3", "http://0.0.0.0"],
  "https://localhost",
])("an own listener reads nothing from %s, and the caller learns why", async (origin) => {
  const own = await listening();
  expect(await answerOf(`${origin}:${own.port}/v1/traces`, own.port)).toBe("the host is this service itself");
  await eventually(() => expect([own.connections(), own.open()]).toEqual([1, 0]));
  expect(own.read).toEqual([]);
});

test("another program on the same machine is reached", async () => {
  const [own, other] = [await listening(), await listening()];
  expect(await answerOf(`http://localhost:${other.port}/v1/traces`, own.port)).toBe(200);
});
