// Downloads of backups: a link whose visitor gets the backup as a tar archive from its device, through the device's carrier. The way of one:
//
// 1. The operation orders the device to offer the backup for a quarter of an hour, and signs the link.
// 2. The device opens a carrier, if it has none, and gives the archive to the first stream that asks for the offer.
// 3. The edge reads the link, opens that stream and passes it on. An archive that breaks off breaks the download off.
import { randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import type { contract } from "../../../protocol/index.ts";
import { secondsFromNow } from "../../core/clock.ts";
import type { Handlers } from "../../core/feature.ts";
import { type Carriers, DialFailure, type DialFailureReason } from "../../core/ports/carriers.ts";
import { type EdgeError, type EdgeHandler, type EdgeMount, type EdgePages, type EdgeRequest, type EdgeResponse, hasLeft } from "../../core/ports/edge.ts";
import { actorOf, type SystemScope } from "../../core/scope.ts";
import { createSignedValues } from "../../core/signed-values.ts";
import type { FeatureKit } from "../kit.ts";
import { unknownBackup } from "./handlers/reads.ts";
import type { BackupOrders } from "./orders.ts";
import { isKept } from "./states.ts";
import { findBackup, lockBackup } from "./store/backups.ts";

export interface DownloadsDeps extends Pick<FeatureKit, "db" | "clock" | "secretBox"> {
  readonly orders: Pick<BackupOrders, "offer">;
  readonly carriers: () => Pick<Carriers, "dial">;
  readonly pages: EdgePages;
  readonly edgeUrl: () => string;
  readonly isOnline: (scope: SystemScope, deviceId: string) => Promise<boolean>;
}

const PATH = "/backup-downloads/";
const OFFER_SECONDS = 900;
const ID_BYTES = 24;
/** The device hears of the order and opens its carrier within seconds. */
const WITHIN_MS = 30_000;
const AGAIN_MS = 500;
/** Neither the device sent a byte nor the visitor took one for so long. */
const IDLE_MS = 100_000;
const COMING: ReadonlySet<DialFailureReason> = new Set(["offline", "unknown"]);

const Link = z.object({ backupId: z.string(), deviceId: z.string(), downloadId: z.string(), until: z.number() });
type Link = z.output<typeof Link>;

const GONE: EdgeError = { status: 404, code: "DOWNLOAD_EXPIRED", message: "This link is not valid any more. Make a new one." };
const ONLY_GET: EdgeError = { status: 405, code: "METHOD_NOT_ALLOWED", message: "This address answers GET only.", headers: { Allow: "GET" } };
const notOffered = (reason: DialFailureReason): EdgeError =>
  reason === "unknown" || reason === "not_allowed"
    ? { status: 410, code: "DOWNLOAD_USED", message: "The device does not offer this backup, or has given it already: a link works once. Make a new one." }
    : reason === "offline"
      ? { status: 502, code: "DEVICE_OFFLINE", message: "The device that has the backup is not connected." }
      : { status: 502, code: "DOWNLOAD_FAILED", message: "The device could not begin to send the backup. Try again.", reason };

const archiveHeaders = (backupId: string) => ({
  "Content-Type": "application/x-tar",
  "Content-Disposition": `attachment; filename="${backupId}.tar"`,
  "Cache-Control": "no-store",
  "X-Content-Type-Options": "nosniff",
});

/** Passes the archive on, and breaks off what breaks off. */
const passOn = (stream: Duplex, response: EdgeResponse, backupId: string): void => {
  let isWhole = false;
  const idle = setTimeout(() => stream.destroy(), IDLE_MS);
  stream.on("data", () => idle.refresh());
  stream.on("end", () => (isWhole = true));
  stream.on("error", () => undefined);
  stream.on("close", () => {
    clearTimeout(idle);
    // Half an archive must not look like a whole one.
    if (!isWhole) response.destroy();
  });
  response.once("close", () => stream.destroy());
  response.writeHead(200, archiveHeaders(backupId));
  stream.pipe(response);
};

export const createDownloads = ({ db, clock, secretBox, orders, carriers, pages, edgeUrl, isOnline }: DownloadsDeps) => {
  const links = createSignedValues(secretBox, "backup downloads");

  const download: Handlers<typeof contract.backups>["download"] = async ({ scope, commit, fail }, { backupId }) => {
    const seen = await findBackup(db, scope, backupId);
    if (seen === null) throw unknownBackup(backupId);
    const { deviceId } = seen;
    if (isKept(seen.status) && !(await isOnline(scope, deviceId))) throw fail("DEVICE_OFFLINE", { deviceId });
    return commit(async (tx, afterwards) => {
      const row = await lockBackup(tx, scope, backupId);
      if (row === null) throw unknownBackup(backupId);
      if (!isKept(row.status)) throw fail("BACKUP_NOT_RESTORABLE", { backupId, status: row.status });
      const downloadId = randomBytes(ID_BYTES).toString("base64url");
      const until = secondsFromNow(OFFER_SECONDS, clock.now());
      const { commandId, notify } = await orders.offer(tx, scope, row, { downloadId, seconds: OFFER_SECONDS, by: actorOf(scope.principal) });
      afterwards(notify);
      const link: Link = { backupId, deviceId, downloadId, until: until.getTime() };
      return { backupId: row.backupId, url: `${edgeUrl()}${PATH}${links.make(link)}`, expiresAt: until.toISOString(), commandId };
    });
  };

  const linkOf = ({ path }: EdgeRequest): Link | null => {
    const { data } = Link.safeParse(links.read(path.slice(PATH.length)));
    return data === undefined || data.until <= clock.now().getTime() ? null : data;
  };
  /** Null: the visitor has left. */
  const open = async ({ deviceId, downloadId, until }: Link, response: EdgeResponse): Promise<Duplex | null> => {
    const ageMs = clock.now().getTime() - (until - OFFER_SECONDS * 1_000);
    const latest = clock.elapsed() + WITHIN_MS - Math.max(0, ageMs);
    for (;;) {
      try {
        return await carriers().dial(deviceId, `download:${downloadId}`);
      } catch (error) {
        if (!(error instanceof DialFailure) || !COMING.has(error.reason) || clock.elapsed() > latest) throw error;
      }
      if (hasLeft(response)) return null;
      await sleep(AGAIN_MS);
    }
  };
  const handler: EdgeHandler = {
    handle: async (request, response) => {
      const to = { request, response };
      if (request.method !== "GET") return pages.refuse(to, ONLY_GET);
      const link = linkOf(request);
      if (link === null) return pages.refuse(to, GONE);
      try {
        const stream = await open(link, response);
        if (stream === null || hasLeft(response)) stream?.destroy();
        else passOn(stream, response, link.backupId);
      } catch (error) {
        if (!(error instanceof DialFailure)) throw error;
        pages.refuse(to, notOffered(error.reason));
      }
      return undefined;
    },
  };
  const mount: EdgeMount = { prefix: PATH, handler, everywhere: true };
  return { download, mount };
};
