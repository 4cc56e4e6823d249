// A carrier on a Node that has no function for it: HTTP/2 begins on a connection that is open already, and carries bytes both ways.
import { once } from "node:events";
import { connect } from "node:http2";
import { Duplex } from "node:stream";
import { expect, test } from "vitest";
import { beginAsServer } from "../../agent-sim/agent/carrier/handshake.ts";

/** Two ends of one connection. */
const connectionPair = (): readonly [Duplex, Duplex] => {
  const end = (other: () => Duplex): Duplex =>
    new Duplex({
      read: () => undefined,
      write: (chunk, _encoding, done) => {
        other().push(chunk);
        done();
      },
      final: (done) => {
        other().push(null);
        done();
      },
    });
  const left: Duplex = end(() => right);
  const right: Duplex = end(() => left);
  return [left, right];
};

test("a stream that the gateway opens reaches the agent, and is answered", async () => {
  const [gateway, agent] = connectionPair();
  const session = beginAsServer(agent, { settings: { maxConcurrentStreams: 5 } });
  session.on("stream", (stream, headers) => {
    stream.respond({ ":status": 200, authority: headers[":authority"] ?? "" });
    stream.pipe(stream);
  });
  const client = connect("http://agent", { createConnection: () => gateway });
  const stream = client.request({ ":method": "CONNECT", ":authority": "service:80" }, { endStream: false });
  const [answer] = (await once(stream, "response")) as [Record<string, unknown>]; // as: its documented arguments
  expect(answer).toMatchObject({ ":status": 200, authority: "service:80" });
  stream.end("hello");
  expect(Buffer.concat(await stream.toArray()).toString()).toBe("hello");
  expect(client.remoteSettings.maxConcurrentStreams).toBe(5);
  client.destroy();
});
