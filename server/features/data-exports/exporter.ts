// Makes exports: one at a time on a node, two in the installation, each of one snapshot. A snapshot cannot be continued, so an export whose node died is
// begun anew by another node, three times at most. The lock of an export lasts as long as its snapshot: there is no lease to run out.
import { setTimeout as sleep } from "node:timers/promises";
import { contract, type DataExport } from "../../../protocol/index.ts";
import type { ChunkBox } from "../../core/chunk-box.ts";
import { DAY_SECONDS, secondsFromNow } from "../../core/clock.ts";
import { happened } from "../../core/events.ts";
import type { PresentAccess } from "../../core/people/present-access.ts";
import { createPlacedWork, WORK_ATTEMPTS } from "../../core/placed-work.ts";
import type { TenantScope } from "../../core/scope.ts";
import type { DbSnapshot } from "../../platform/database/snapshot.ts";
import type { FeatureKit } from "../kit.ts";
import { type Counts, writeContents } from "./contents.ts";
import { type AllHandlers, permissionsFor } from "./sections.ts";
import { beginAttempt, bytesOfExports, type ExportEnd, type ExportRow, endAttempt, findWaitingExports, insertChunk, saveExportProgress } from "./store.ts";
import { createFileWriter, exportKeys, type FileWriter } from "./writer.ts";

export interface ExporterDeps extends Pick<FeatureKit, "db" | "clock" | "emit" | "secretBox"> {
  readonly handlers: AllHandlers;
  readonly access: PresentAccess;
  readonly chunkBox: ChunkBox;
  readonly gatewayVersion: string;
  readonly onError: (error: unknown) => void;
  readonly settings?: Partial<ExportSettings> | undefined;
}

export interface ExportSettings {
  /** Exports at once in the installation. A node with 0 leaves all of them to others. */
  readonly places: number;
  readonly maxBytes: number;
  /** The bound of all files of the installation together. */
  readonly maxStoredBytes: number;
  readonly maxMs: number;
  /** For tests: called before each chunk is kept. */
  readonly beforeChunk: (part: number) => Promise<void>;
}

const GIB = 1_073_741_824;
const DEFAULTS: ExportSettings = { places: 2, maxBytes: 2 * GIB, maxStoredBytes: 10 * GIB, maxMs: 900_000, beforeChunk: async () => undefined };
/** A page is written on the thread that answers calls, and a call passes it several times. */
const MAX_PAUSE_MS = 50;
const KEEP_DAYS = 7;
/** The size of all files is looked at so often. */
const CHUNKS_BETWEEN_SUMS = 64;

type Reason = NonNullable<DataExport["statusReason"]>;
/** Ends an export for good. */
class ExportFailed extends Error {
  readonly reason: Reason;
  constructor(reason: Reason) {
    super(`the export failed: ${reason}`);
    this.reason = reason;
  }
}
/** Somebody has cancelled it, or another node has it. */
class NotOurs extends Error {}

export const createExporter = ({ db, clock, emit, secretBox, handlers, access, chunkBox, gatewayVersion, onError, settings: given }: ExporterDeps) => {
  const settings = { ...DEFAULTS, ...given };
  const [key = new Uint8Array()] = exportKeys(secretBox);

  const end = async (row: ExportRow, with_: ExportEnd): Promise<void> => {
    await db.tx(async (tx) => {
      const ended = await endAttempt(tx, row, with_);
      if (ended === null || (ended.status !== "completed" && ended.status !== "failed")) return;
      const { exportId, scopes, sizeBytes } = ended;
      const statusReason = with_.statusReason ?? null;
      const { completed, failed } = contract.dataExports.events;
      await emit(tx, [
        happened(row, ended.status === "completed" ? completed : failed, exportId, {
          exportId: exportId as DataExport["exportId"],
          scopes: [...scopes],
          sizeBytes,
          statusReason,
        }),
      ]); // as: a row's id
    });
  };

  /** The creator's access as it is now. */
  const accessOf = async ({ tenantId, exportId, createdBy, scopes }: ExportRow): Promise<TenantScope> => {
    const scope = await access({ tenantId, workId: exportId, createdBy }, { permissions: ["export:create", ...permissionsFor(scopes)], unlimitedOnly: true });
    if (scope === null) throw new ExportFailed("ACCESS_LOST");
    return scope;
  };

  const writerOf = (row: ExportRow): FileWriter => {
    let part = 0;
    const writer: FileWriter = createFileWriter({
      key,
      keep: async (bytes) => {
        const sizeBytes = writer.sizeBytes();
        if (sizeBytes > settings.maxBytes) throw new ExportFailed("TOO_LARGE");
        if (part % CHUNKS_BETWEEN_SUMS === 0 && (await bytesOfExports(db)) + bytes.length > settings.maxStoredBytes) throw new ExportFailed("TOO_LARGE");
        await settings.beforeChunk(part);
        await db.tx(async (tx) => {
          if (!(await saveExportProgress(tx, row, { lines: writer.lines(), sizeBytes }))) throw new NotOurs();
          await insertChunk(tx, row, part, chunkBox.seal(bytes, row.exportId, part));
        });
        part += 1;
      },
    });
    return writer;
  };

  const write = (snapshot: DbSnapshot, row: ExportRow, writer: FileWriter, signal: AbortSignal): Promise<Counts> => {
    const endsAt = clock.elapsed() + settings.maxMs;
    let since = clock.elapsed();
    return writeContents({
      row,
      writer,
      handlers,
      head: { exportedAt: clock.now().toISOString(), gatewayVersion },
      read: snapshot.read,
      beginSection: async (section, counts) => {
        const scope = await accessOf(row);
        if (!(await saveExportProgress(db, row, { section, lines: writer.lines(), counts }))) throw new NotOurs();
        return scope;
      },
      breathe: async () => {
        await sleep(Math.min(clock.elapsed() - since, MAX_PAUSE_MS));
        if (signal.aborted) throw signal.reason;
        since = clock.elapsed();
        if (since > endsAt) throw new ExportFailed("TOO_LONG");
      },
    });
  };

  const breakDown = (row: ExportRow): Promise<void> => end(row, { status: "failed", statusReason: "INTERNAL_ERROR", completedAt: clock.now() });

  const make = async (snapshot: DbSnapshot, row: ExportRow, signal: AbortSignal): Promise<void> => {
    const writer = writerOf(row);
    try {
      const counts = await write(snapshot, row, writer, signal);
      const { sha256, sizeBytes } = await writer.finish();
      if (!(await saveExportProgress(db, row, { lines: writer.lines(), counts, sizeBytes }))) return;
      const now = clock.now();
      await end(row, { status: "completed", sha256, completedAt: now, expiresAt: secondsFromNow(KEEP_DAYS * DAY_SECONDS, now) });
    } catch (error) {
      if (error instanceof NotOurs) return;
      if (error instanceof ExportFailed) return end(row, { status: "failed", statusReason: error.reason, completedAt: clock.now() });
      // This node stops, and another one goes on: nothing has failed.
      if (signal.aborted) return end(row, { status: "pending", attempt: row.attempt - 1 });
      onError(error);
      if (row.attempt >= WORK_ATTEMPTS) await breakDown(row);
    } finally {
      writer.drop();
    }
  };

  return createPlacedWork<DbSnapshot, ExportRow, ExportRow>({
    name: "data export",
    places: settings.places,
    findWaiting: (limit) => findWaitingExports(db, limit),
    withSession: (run) => db.snapshot(run),
    lockOf: ({ exportId }) => `data export ${exportId}`,
    begin: (found) => db.tx((tx) => beginAttempt(tx, found, clock.now())),
    make,
    giveUp: breakDown,
  });
};
