// Backups that a device offers for a download: to one stream each, for their time, as fast as the reader takes them.
import { once } from "node:events";
import { buffer } from "node:stream/consumers";
import { expect, test } from "vitest";
import { createOffers, type SendArchive } from "../../../agent-sim/host/backups/offers.ts";
import { createHandTime } from "../clocks.ts";

const offering = (send: SendArchive) => {
  const time = createHandTime();
  const offers = createOffers(time);
  offers.add({ downloadId: "one", seconds: 900, send });
  const dial = () => {
    const archive = offers.dial("download:one");
    if (archive === null || typeof archive === "string") throw new Error(`there is no offer: ${archive}`);
    return archive;
  };
  return { time, offers, dial };
};
const write = (into: Parameters<SendArchive>[0], bytes: number): Promise<void> =>
  new Promise((resolve) => void into.write(Buffer.alloc(bytes, "a"), () => resolve()));

test("the first stream gets the whole archive, whatever it sends itself, and the next one nothing", async () => {
  const { offers, dial } = offering(async (into) => {
    for (let at = 0; at < 20; at += 1) await write(into, 100_000);
  });
  const archive = dial();
  archive.write("the visitor's bytes are no part of it");
  const pieces: Buffer[] = [];
  archive.on("data", (piece: Buffer) => void pieces.push(piece));
  await once(archive, "end");
  expect(Buffer.concat(pieces).toString()).toBe("a".repeat(2_000_000));
  archive.end();
  await once(archive, "close");
  expect([offers.dial("download:one"), offers.dial("download:two"), offers.dial("tun_1"), offers.needsCarrier]).toEqual([
    "not_allowed",
    "unknown",
    null,
    false,
  ]);
});

test("an order that comes again offers nothing a second time", async () => {
  const { offers, dial } = offering((into) => write(into, 1));
  dial();
  offers.add({ downloadId: "one", seconds: 900, send: (into) => write(into, 1) });
  expect(offers.dial("download:one")).toBe("not_allowed");
});

test("an offer ends with its time", () => {
  const { time, offers } = offering((into) => write(into, 1));
  time.advance(899_000);
  expect(offers.needsCarrier).toBe(true);
  time.advance(1_000);
  expect([offers.dial("download:one"), offers.needsCarrier]).toEqual(["unknown", false]);
});

test("what is not read waits at its source, and a reader who leaves ends the source", async () => {
  let written = 0;
  let left = false;
  const { dial } = offering(async (into, signal) => {
    signal.addEventListener("abort", () => (left = true));
    while (!signal.aborted) {
      await write(into, 100_000);
      written += 1;
    }
  });
  const archive = dial();
  await once(archive, "readable");
  expect(written).toBeLessThan(5);
  archive.destroy();
  await once(archive, "close");
  expect(left).toBe(true);
});

test("an archive that breaks off ends with an error", async () => {
  const { dial } = offering(async (into) => {
    await write(into, 10);
    throw new Error("restic broke off");
  });
  await expect(buffer(dial())).rejects.toThrow("restic broke off");
});
