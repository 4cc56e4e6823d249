// Makes the plans of files that were uploaded: one at a time on a node, two in the installation. A file is read
// twice, so that nothing of it counts before all its checksums are right. If the node dies, another one begins the plan anew, three times at most. The lock of an import lasts as long as the
// session that reads its file.
import { contract } from "../../../protocol/index.ts";
import type { ChunkBox } from "../../core/chunk-box.ts";
import { secondsFromNow } from "../../core/clock.ts";
import { isAppError } from "../../core/errors.ts";
import { happened } from "../../core/events.ts";
import type { PresentAccess } from "../../core/people/present-access.ts";
import { createPlacedWork, WORK_ATTEMPTS } from "../../core/placed-work.ts";
import type { TenantScope } from "../../core/scope.ts";
import type { DbSnapshot } from "../../platform/database/snapshot.ts";
import type { FeatureKit } from "../kit.ts";
import { ExportReader } from "./export-reader.ts";
import { gunzipLines } from "./gunzip-lines.ts";
import { makePlan, type PlanFacts, rightsFor } from "./make-plan.ts";
import type { Planner } from "./plan.ts";
import type { PlannedLine } from "./plan-changes.ts";
import type { ImportChange, ImportRow, NewLine } from "./store.ts";
import { beginPlanning, endPlanning, findUnplanned, keepLines, partsOf, readPart } from "./upload-store.ts";
import { type DocumentDeps, invalidDocument, type ReadDocument, type WantedLine } from "./wanted.ts";

export interface ImportSettings {
  /** Plans at once in the installation. A node with 0 leaves all of them to others. */
  readonly places: number;
  readonly maxMs: number;
  /** For tests: called before lines of a plan are kept. */
  readonly beforeLines: () => Promise<void>;
}

export interface ValidatorDeps extends Pick<FeatureKit, "db" | "clock" | "emit">, DocumentDeps {
  readonly access: PresentAccess;
  readonly partBox: ChunkBox;
  readonly plannerOf: (scope: TenantScope, row: ImportRow) => Planner;
  readonly stored: (importId: string, lines: readonly PlannedLine[]) => readonly NewLine[];
  readonly isHistory: (kind: string) => boolean;
  readonly onError: (error: unknown) => void;
  readonly settings?: Partial<ImportSettings> | undefined;
}

const DEFAULTS: ImportSettings = { places: 2, maxMs: 900_000, beforeLines: async () => undefined };
const BROKEN = "Something went wrong on the server.";
/** Records that are no history. The planner has a name in memory for each. */
const MAX_RECORDS = 100_000;
/** A plan is of a moment: after a day, another is made. */
export const PLAN_SECONDS = 86_400;

const lockOf = (importId: string): string => `plan of import ${importId}`;

/** Ends an import for good, with the reason in words. */
class ImportFailed extends Error {}
/** Somebody has deleted it, or another node has it. */
class NotOurs extends Error {}

export const createValidator = (deps: ValidatorDeps) => {
  const { db, clock, emit, access, partBox, onError } = deps;
  const settings = { ...DEFAULTS, ...deps.settings };

  const end = async (row: ImportRow, change: ImportChange): Promise<void> => {
    await db.tx(async (tx) => {
      if (!(await endPlanning(tx, row, change)) || change.status !== "failed") return;
      const told = { importId: row.importId as `imt_${string}`, status: change.status, succeeded: 0, failed: 0 }; // as: a row's id
      await emit(tx, [happened(row, contract.imports.events.failed, row.importId, told)]);
    });
  };

  const partsIn = async function* (snapshot: DbSnapshot, row: ImportRow): AsyncGenerator<Uint8Array> {
    const { importId } = row;
    for (const from of await snapshot.read(() => partsOf(db, row, importId))) {
      const sealed = await snapshot.read(() => readPart(db, row, importId, from));
      const bytes = sealed === null ? null : partBox.open(sealed, importId, from);
      if (bytes === null) throw new ImportFailed("its file was sealed with another master key; upload it again");
      yield bytes;
    }
  };

  /** The records of the file, each as soon as its line is there. */
  const recordsIn = async function* (snapshot: DbSnapshot, row: ImportRow, reader: ExportReader, check: () => void): AsyncGenerator<WantedLine> {
    for await (const texts of gunzipLines(partsIn(snapshot, row))) {
      check();
      for (const text of texts) {
        const record = reader.take(text);
        if (record !== null) yield record;
      }
    }
  };

  const plan = async (snapshot: DbSnapshot, row: ImportRow, signal: AbortSignal): Promise<PlanFacts & Pick<ReadDocument, "origin">> => {
    const endsAt = clock.elapsed() + settings.maxMs;
    const check = (): void => {
      if (signal.aborted) throw signal.reason;
      if (clock.elapsed() > endsAt) throw new ImportFailed("reading its file took too long");
    };
    const whole = new ExportReader(deps);
    let records = 0;
    for await (const { kind, line } of recordsIn(snapshot, row, whole, check)) {
      if (!deps.isHistory(kind)) records += 1;
      if (records > MAX_RECORDS) throw invalidDocument(line, `is one more than the ${MAX_RECORDS} records that an import has at most, besides history`);
    }
    const origin = whole.finish();
    const { tenantId, importId: workId, createdBy } = row;
    const scope = await access({ tenantId, workId, createdBy }, { permissions: rightsFor(row.mode), unlimitedOnly: true });
    if (scope === null) throw new ImportFailed("who began it may not do so any more");
    const facts = await makePlan(deps.plannerOf(scope, row), {
      mode: row.mode,
      kinds: whole.kinds,
      lines: recordsIn(snapshot, row, new ExportReader(deps), check),
      keep: async (lines) => {
        await settings.beforeLines();
        // A session that is silent for long is ended, and its lock with it.
        if (!(await snapshot.lock(lockOf(workId)))) throw new NotOurs();
        if (!(await db.tx((tx) => keepLines(tx, row, deps.stored(workId, lines))))) throw new NotOurs();
      },
    });
    return { ...facts, origin };
  };

  const fail = (row: ImportRow, statusReason: string): Promise<void> => end(row, { status: "failed", statusReason, completedAt: clock.now() });

  const make = async (snapshot: DbSnapshot, row: ImportRow, signal: AbortSignal): Promise<void> => {
    try {
      const facts = await plan(snapshot, row, signal);
      const now = clock.now();
      await end(row, { ...facts, status: "ready", readyAt: now, expiresAt: secondsFromNow(PLAN_SECONDS, now) });
    } catch (error) {
      // Another node goes on with it: nothing has failed.
      if (error instanceof NotOurs || signal.aborted) return;
      if (error instanceof ImportFailed || isAppError(error)) return fail(row, error.message);
      onError(error);
      if (row.attempt >= WORK_ATTEMPTS) await fail(row, BROKEN);
    }
  };

  return createPlacedWork<DbSnapshot, Pick<ImportRow, "tenantId" | "importId">, ImportRow>({
    name: "import",
    places: settings.places,
    findWaiting: (limit) => findUnplanned(db, limit),
    withSession: (run) => db.snapshot(run),
    lockOf: ({ importId }) => lockOf(importId),
    begin: ({ tenantId, importId }) => db.tx((tx) => beginPlanning(tx, { tenantId }, importId)),
    make,
    giveUp: (row) => fail(row, BROKEN),
  });
};
