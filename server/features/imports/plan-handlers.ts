// Makes plans: at once for a document that comes with its call, later (validator.ts) for a file that is uploaded part by part.
import type { contract, Import } from "../../../protocol/index.ts";
import { permissionsIn } from "../../core/access.ts";
import type { ChunkBox } from "../../core/chunk-box.ts";
import { secondsFromNow } from "../../core/clock.ts";
import { AppError } from "../../core/errors.ts";
import type { Handlers } from "../../core/feature.ts";
import { newId } from "../../core/ids.ts";
import { actorOf, type TenantScope } from "../../core/scope.ts";
import type { FeatureKit } from "../kit.ts";
import { readImport } from "./document.ts";
import type { LineBox } from "./line-box.ts";
import { makePlan, rightsFor } from "./make-plan.ts";
import { createPlanner, type Planner } from "./plan.ts";
import type { PlannedLine, RecordKind } from "./plan-changes.ts";
import { findBusy, findImport, type ImportRow, insertImport, insertLines, lockImports, type NewLine, toImport, updateImport } from "./store.ts";
import { isNextPart, uploadPartOf } from "./upload.ts";
import { insertUploadPart } from "./upload-store.ts";
import { PLAN_SECONDS } from "./validator.ts";
import type { Data, DocumentDeps } from "./wanted.ts";

export const unknownImport = (importId: string): AppError => new AppError("IMPORT_NOT_FOUND", { details: { importId } });

/** Throws FORBIDDEN. */
export const requireRights = (scope: TenantScope, mode: Import["mode"]): void => {
  const may = permissionsIn(scope);
  const lacking = rightsFor(mode).find((permission) => !may.has(permission));
  if (lacking !== undefined) throw new AppError("FORBIDDEN", { details: { requiredPermission: lacking } });
};

export interface PlanHandlersDeps extends Pick<FeatureKit, "clock">, DocumentDeps {
  readonly lineBox: LineBox;
  readonly partBox: ChunkBox;
  readonly kindNamed: (kind: string) => RecordKind;
  /** The records of a kind that the caller sees. */
  readonly load: (scope: TenantScope, kind: string) => Promise<readonly Data[]>;
  /** A file has come whole. */
  readonly planLater: () => void;
}

type Asked = Pick<ImportRow, "conflict" | "sendInvites" | "lenient" | "format">;
interface PlanHandlers extends Pick<Handlers<typeof contract.imports>, "create" | "upload"> {
  readonly plannerOf: (scope: TenantScope, asked: Asked) => Planner;
  readonly storedLines: (importId: string, lines: readonly PlannedLine[]) => readonly NewLine[];
}

export const createPlanHandlers = (deps: PlanHandlersDeps): PlanHandlers => {
  const { clock, lineBox, partBox, kindNamed } = deps;

  const plannerOf: PlanHandlers["plannerOf"] = (scope, { format, ...options }) => {
    const may = permissionsIn(scope);
    return createPlanner({ kindNamed, load: (kind) => deps.load(scope, kind), may: (permission) => may.has(permission) }, options, format);
  };
  const storedLines: PlanHandlers["storedLines"] = (importId, lines) =>
    lines.map(({ calls, ...line }) => ({
      ...line,
      status: calls.length === 0 ? "succeeded" : "pending",
      calls: lineBox.seal(calls, importId, line.n),
    }));

  return {
    plannerOf,
    storedLines,
    create: async ({ scope, commit, fail }, { document: text, mode, ...options }) => {
      requireRights(scope, mode);
      const document = text === undefined ? null : readImport(text, deps);
      const lines: PlannedLine[] = [];
      const keep = async (more: readonly PlannedLine[]): Promise<void> => void lines.push(...more);
      const planned = document === null ? null : await makePlan(plannerOf(scope, { ...options, format: document.format }), { mode, ...document, keep });
      return commit(async (tx) => {
        const importId = newId("imt");
        const now = clock.now();
        const asked = { ...options, importId, mode, createdBy: actorOf(scope.principal), expiresAt: secondsFromNow(PLAN_SECONDS, now) };
        if (document === null || planned === null) {
          await lockImports(tx, scope);
          const busy = await findBusy(tx, scope, ["uploading", "validating"]);
          if (busy !== null) throw fail("IMPORT_IN_PROGRESS", { importId: busy });
          return toImport(await insertImport(tx, scope, { ...asked, status: "uploading", format: "export", origin: "foreign", receivedBytes: 0 }));
        }
        const { format, origin } = document;
        const row = await insertImport(tx, scope, { ...asked, ...planned, status: "ready", format, origin, readyAt: now });
        await insertLines(tx, scope, importId, storedLines(importId, lines));
        return toImport(row);
      });
    },
    upload: ({ scope, commit, fail }, { importId, contentRange, part: text }) => {
      const bytes = Buffer.from(text, "base64");
      const part = uploadPartOf(contentRange, bytes.length);
      return commit(async (tx, afterwards) => {
        await lockImports(tx, scope);
        const row = await findImport(tx, scope, importId);
        if (row === null) throw unknownImport(importId);
        const isUpload = row.receivedBytes !== null;
        if (isUpload && !isNextPart(row, part)) return toImport(row);
        if (!isUpload || row.status !== "uploading") throw fail("INVALID_STATE_TRANSITION", { from: row.status, to: "uploading", allowed: [] });
        await insertUploadPart(tx, scope, importId, { fromByte: part.from, bytes: partBox.seal(bytes, importId, part.from) });
        const isWhole = part.end === part.sizeBytes;
        const change = { receivedBytes: part.end, sizeBytes: part.sizeBytes, status: isWhole ? "validating" : "uploading" } as const;
        await updateImport(tx, scope, importId, change);
        if (isWhole) afterwards(deps.planLater);
        return toImport({ ...row, ...change });
      });
    },
  };
};
