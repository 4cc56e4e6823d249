// Imports: a document of what a tenant should have becomes a plan (plan.ts), and that plan is carried out by the operations that people use (stepper.ts).
import { type Contract, contract, type ExportScope, type Permission } from "../../../protocol/index.ts";
import { permissionsIn } from "../../core/access.ts";
import { createChunkBox } from "../../core/chunk-box.ts";
import { type Handlers, implement } from "../../core/feature.ts";
import { pageWithActors, withActor } from "../../core/people/actors.ts";
import { type AccessDeps, createPresentAccess } from "../../core/people/present-access.ts";
import { requireRecentSignIn } from "../../core/people/recent-sign-in.ts";
import { actorOf, type TenantScope } from "../../core/scope.ts";
import type { Feature, FeatureKit } from "../kit.ts";
import { IMPORTED_KINDS } from "./kinds.ts";
import { createLineBox } from "./line-box.ts";
import { type ManifestSection, takeRecords, writeManifest } from "./manifest.ts";
import type { RecordKind } from "./plan-changes.ts";
import { createPlanHandlers, requireRights, unknownImport } from "./plan-handlers.ts";
import { createImportStepper, IMPORT } from "./stepper.ts";
import { deleteImport, findBusy, findImport, forgetImports, type ImportRow, lockImports, pageOfImports, pageOfLines, toImport, updateImport } from "./store.ts";
import { deleteOldParts } from "./upload-store.ts";
import { createValidator, type ValidatorDeps } from "./validator.ts";
import type { Data, DocumentDeps } from "./wanted.ts";

export type { ImportSettings } from "./validator.ts";

export interface ImportsDeps
  extends Pick<FeatureKit, "db" | "clock" | "emit" | "audit" | "many" | "secretBox" | "until">,
    AccessDeps,
    DocumentDeps,
    Pick<ValidatorDeps, "onError" | "settings"> {
  readonly wakeJob: (name: string) => void;
  readonly handlers: { readonly [G in keyof Contract]: Handlers<Contract[G]> };
  /** In their order, with what their reader needs. */
  readonly sections: readonly { readonly scope: ExportScope; readonly kind: string; readonly permission: Permission }[];
  readonly kindNamed: (kind: string) => RecordKind;
  /** The records of a kind that the caller sees. */
  readonly recordsOf: (scope: TenantScope, kind: string) => AsyncIterable<readonly Data[]>;
}

const PLAN_JOB = "imports.plan";
const PRIORITY = 3;
const MAX_RECORDS = 5_000;
const FORGET_MS = 600_000;

export const createImports = (deps: ImportsDeps): Feature<typeof contract.imports> => {
  const { db, clock, many, until } = deps;
  const lineBox = createLineBox(deps.secretBox);
  const partBox = createChunkBox(deps.secretBox, "import parts");
  const access = createPresentAccess(deps);

  const load = (scope: TenantScope, kind: string): Promise<readonly Data[]> => takeRecords(deps.recordsOf(scope, kind));
  const find = async (scope: TenantScope, importId: string): Promise<ImportRow> => {
    const row = await findImport(db, scope, importId);
    if (row === null) throw unknownImport(importId);
    return row;
  };
  const { create, upload, plannerOf, storedLines } = createPlanHandlers({ ...deps, load, lineBox, partBox, planLater: () => deps.wakeJob(PLAN_JOB) });
  const makeNext = createValidator({
    ...deps,
    access,
    partBox,
    plannerOf,
    stored: storedLines,
    isHistory: (kind) => deps.kindNamed(kind).isHistory,
  });
  const shown = (scope: TenantScope, row: ImportRow) => withActor(db, scope, toImport(row));

  return {
    handlers: implement(contract.imports, {
      manifest: async ({ scope, fail }, { scopes }) => {
        const may = permissionsIn(scope);
        const sections: ManifestSection[] = [];
        let left = MAX_RECORDS;
        for (const { scope: section, kind, permission } of deps.sections) {
          if (IMPORTED_KINDS[kind] === undefined || !may.has(permission) || scopes?.includes(section) === false) continue;
          const records = await takeRecords(deps.recordsOf(scope, kind), left);
          if (records.length > left) throw fail("EXPORT_TOO_LARGE", { limit: MAX_RECORDS });
          left -= records.length;
          sections.push({ scope: section, named: deps.kindNamed(kind), records });
        }
        return writeManifest(sections);
      },
      list: async ({ scope }, query) => {
        const { items, ...page } = await pageOfImports(db, scope, query);
        return pageWithActors(db, scope, { ...page, items: items.map(toImport) });
      },
      get: async ({ scope }, { importId }) => shown(scope, await find(scope, importId)),
      wait: async ({ scope, signal }, { importId, status, timeout: seconds }) => {
        const read = () => find(scope, importId);
        const isDone = (row: ImportRow) => (status as readonly string[]).includes(row.status);
        return shown(scope, await until(scope, { subjectId: importId, seconds, signal, read, isDone }));
      },
      report: async ({ scope }, query) => {
        await find(scope, query.importId);
        return pageOfLines(db, scope, query);
      },
      create,
      upload,
      apply: ({ scope, commit, fail }, { importId, planHash, confirmDeletes }) => {
        if (scope.principal.kind === "user") requireRecentSignIn(scope.principal, clock);
        return commit(async (tx, afterwards) => {
          await lockImports(tx, scope);
          const row = await findImport(tx, scope, importId);
          if (row === null) throw unknownImport(importId);
          requireRights(scope, row.mode);
          if (row.planHash !== planHash) throw fail("IMPORT_PLAN_CHANGED", { importId });
          if (row.status !== "ready" || row.mode === "dry_run")
            throw fail("INVALID_STATE_TRANSITION", { from: row.mode === "dry_run" ? "dry_run" : row.status, to: "applying", allowed: [] });
          if (row.deletesToConfirm !== null && row.deletesToConfirm !== confirmDeletes)
            throw fail("IMPORT_DELETES_UNCONFIRMED", { deletes: row.deletesToConfirm });
          const other = await findBusy(tx, scope, ["applying"]);
          if (other !== null) throw fail("IMPORT_IN_PROGRESS", { importId: other });
          await updateImport(tx, scope, importId, { status: "applying", appliedBy: actorOf(scope.principal) });
          await many.begin(tx, scope, { recordId: importId, kind: IMPORT, priority: PRIORITY, stepAt: null });
          afterwards(() => many.hint());
          return toImport({ ...row, status: "applying" });
        });
      },
      remove: ({ scope, commit }, { importId }) =>
        commit(async (tx) => {
          await many.hold(tx, scope, importId);
          const row = await findImport(tx, scope, importId);
          if (row === null) throw unknownImport(importId);
          await many.end(tx, scope, importId);
          if (row.status === "applying") await updateImport(tx, scope, importId, { status: "cancelled", completedAt: clock.now() });
          else await deleteImport(tx, scope, importId);
          return null;
        }),
    }),
    steppers: [
      createImportStepper({
        ...deps,
        lineBox,
        access,
        idOf: (kind) => deps.kindNamed(kind).id,
        handlerOf: (operation) => {
          const [group, name] = operation.split(".") as [keyof Contract, string]; // as: the plan names operations of the contract
          return Reflect.get(deps.handlers[group], name);
        },
      }),
    ],
    jobs: [
      { name: PLAN_JOB, everyMs: 5_000, run: makeNext },
      {
        name: "imports.forget",
        everyMs: FORGET_MS,
        run: async () => {
          await forgetImports(db, clock.now());
          await deleteOldParts(db);
        },
      },
    ],
  };
};
