// A service behind a carrier that does what the first line asks for, and bursts of connections to it that break off.
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import { type EdgeRig, eventually, portOf } from "./rig.ts";

export interface AskedService {
  readonly port: number;
  /** Every connection that it has got. */
  readonly opened: readonly Socket[];
  close(): void;
}

export const startAskedService = async (): Promise<AskedService> => {
  const opened: Socket[] = [];

  /** Answers by the first line that it gets. */
  const service = createServer({ allowHalfOpen: true }, (socket) => {
    opened.push(socket);
    socket.on("error", () => undefined);
    socket.once("data", (first: Buffer) => {
      const end = first.indexOf("\n");
      const asked = first.subarray(0, end).toString();
      if (end + 1 < first.length) socket.unshift(first.subarray(end + 1));
      if (asked === "echo") socket.pipe(socket);
      if (asked === "afterwards") {
        socket.resume();
        socket.on("end", () => {
          socket.write("the answer ");
          socket.end("comes after the end");
        });
      }
      if (asked === "flood") {
        const chunk = Buffer.alloc(65_536, 7);
        const write = (): void => {
          while (!socket.destroyed && socket.write(chunk));
        };
        socket.on("drain", write);
        write();
      }
      if (asked === "break") {
        socket.write("half of the");
        socket.once("data", () => socket.resetAndDestroy());
      }
      if (asked === "wait") {
        socket.write("a part");
        socket.resume().on("end", () => socket.destroy());
      }
      if (asked === "hello") socket.end("hello");
    });
  });
  service.listen(0, "127.0.0.1");
  await once(service, "listening");
  return { port: portOf(service), opened, close: () => service.close() };
};

export const askOver = async (from: EdgeRig, word: string, key = "dev_1"): Promise<Duplex> => {
  const stream = await from.carriers.dial(key, "tun_a", { halfOpen: true });
  stream.on("error", () => undefined);
  stream.write(`${word}\n`);
  return stream;
};

/** Breaks off this many connections, fifty at once, and counts how often another one suffers, or one of them outlives the burst. */
export const abortMany = async (from: EdgeRig, { opened }: AskedService, count: number): Promise<number> => {
  let failures = 0;
  const before = opened.length;
  for (let done = 0; done < count; done += 50) {
    const streams = await Promise.all(Array.from({ length: 50 }, () => askOver(from, "wait").catch(() => null)));
    for (const stream of streams) stream?.destroy();
    const answer = await askOver(from, "hello")
      .then(text)
      .catch(() => "none");
    if (answer !== "hello") failures += 1;
  }
  await eventually(() => opened.slice(before).every((socket) => socket.destroyed), "every connection of the burst has ended").catch(() => {
    failures += 1;
  });
  return failures;
};
