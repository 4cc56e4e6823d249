// Links to backups, as a function: how long one counts, how long its visitor waits for the device, and what the visitor is told.
import { expect, test } from "vitest";
import { createTestClock } from "../../../server/core/clock.ts";
import { DialFailure, type DialFailureReason } from "../../../server/core/ports/carriers.ts";
import { createSignedValues } from "../../../server/core/signed-values.ts";
import { createDownloads, type DownloadsDeps } from "../../../server/features/backups/downloads.ts";

const secretBox = { deriveAll: () => [Buffer.alloc(32, "k")] };
const MINUTE_MS = 60_000;

/** A visit of a link with this age, to a device that answers each dial so. Each dial takes ten seconds. */
const visit = async (reason: DialFailureReason, { ageMs = 0, link = "", hasLeft = false } = {}) => {
  const clock = createTestClock();
  let dials = 0;
  const said: string[] = [];
  const unused = (): never => {
    throw new Error("a visit does not need it");
  };
  const dial = async (): Promise<never> => {
    dials += 1;
    clock.advance(10_000);
    throw new DialFailure(reason);
  };
  const pages: DownloadsDeps["pages"] = { refuse: (_to, { status, code }) => said.push(`${status} ${code}`), refuseSocket: unused };
  const { mount } = createDownloads({
    ...{ clock, pages, carriers: () => ({ dial }), secretBox: secretBox as never, db: {} as never },
    ...{ edgeUrl: unused, isOnline: unused, orders: { offer: unused } },
  });
  const until = clock.now().getTime() + 15 * MINUTE_MS;
  const made = link === "" ? createSignedValues(secretBox, "backup downloads").make({ backupId: "bak_1", deviceId: "dev_1", downloadId: "one", until }) : link;
  clock.advance(ageMs);
  await mount.handler.handle({ method: "GET", path: `${mount.prefix}${made}` } as never, { stream: { destroyed: hasLeft } } as never);
  return { said, dials };
};

test("a new link waits for a device that has not heard of its order, and not for ever", async () => {
  expect(await visit("offline")).toEqual({ said: ["502 DEVICE_OFFLINE"], dials: 4 });
  expect(await visit("unknown")).toEqual({ said: ["410 DOWNLOAD_USED"], dials: 4 });
});

test("a link that is older than that, and one that was used, are answered at once", async () => {
  expect(await visit("offline", { ageMs: MINUTE_MS })).toEqual({ said: ["502 DEVICE_OFFLINE"], dials: 1 });
  expect(await visit("not_allowed")).toEqual({ said: ["410 DOWNLOAD_USED"], dials: 1 });
  expect(await visit("full")).toEqual({ said: ["502 DOWNLOAD_FAILED"], dials: 1 });
});

test("nobody goes on dialing for a visitor who has left, over HTTP/2 as well", async () => {
  expect(await visit("offline", { hasLeft: true })).toEqual({ said: [], dials: 1 });
});

test("nobody dials a device for a link that is too old, changed or incomplete", async () => {
  const gone = { said: ["404 DOWNLOAD_EXPIRED"], dials: 0 };
  expect(await visit("full", { ageMs: 15 * MINUTE_MS })).toEqual(gone);
  const signed = createSignedValues(secretBox, "backup downloads");
  const short = signed.make({ deviceId: "dev_1", until: Date.UTC(2100, 0) });
  const whole = signed.make({ backupId: "bak_1", deviceId: "dev_1", downloadId: "one", until: Date.UTC(2100, 0) });
  for (const link of [short, `${whole}x`, `x${whole}`, `${whole}.`, "a", ".", "a.b.c", "x".repeat(2_000), "%00", "__proto__"])
    expect(await visit("full", { link })).toEqual(gone);
});
