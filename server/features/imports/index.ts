// Imports: a document of what a tenant should have becomes a plan (plan.ts), and that plan is carried out by the operations that people use (stepper.ts).
import { type Contract, contract, type ExportScope, type ImportAction, type Permission } from "../../../protocol/index.ts";
import { permissionsIn } from "../../core/access.ts";
import { secondsFromNow } from "../../core/clock.ts";
import { AppError } from "../../core/errors.ts";
import { type Handlers, implement } from "../../core/feature.ts";
import { newId } from "../../core/ids.ts";
import { pageWithActors, withActor } from "../../core/people/actors.ts";
import { type AccessDeps, createPresentAccess } from "../../core/people/present-access.ts";
import { requireRecentSignIn } from "../../core/people/recent-sign-in.ts";
import { actorOf, type TenantScope } from "../../core/scope.ts";
import type { Feature, FeatureKit } from "../kit.ts";
import { type Data, type DocumentDeps, readImport } from "./document.ts";
import { IMPORTED_KINDS } from "./kinds.ts";
import { createLineBox } from "./line-box.ts";
import { type ManifestSection, writeManifest } from "./manifest.ts";
import { makePlan, planHashOf } from "./plan.ts";
import type { PlannedLine, RecordKind } from "./plan-changes.ts";
import { createImportStepper, IMPORT } from "./stepper.ts";
import {
  deleteImport,
  findApplying,
  findImport,
  forgetImports,
  type ImportRow,
  insertImport,
  lockImports,
  pageOfImports,
  pageOfLines,
  toImport,
  updateImport,
} from "./store.ts";

export interface ImportsDeps extends Pick<FeatureKit, "db" | "clock" | "emit" | "audit" | "many" | "secretBox" | "until">, AccessDeps, DocumentDeps {
  readonly handlers: { readonly [G in keyof Contract]: Handlers<Contract[G]> };
  /** In their order, with what their reader needs. */
  readonly sections: readonly { readonly scope: ExportScope; readonly kind: string; readonly permission: Permission }[];
  readonly kindNamed: (kind: string) => RecordKind;
  /** The records of a kind that the caller sees. */
  readonly recordsOf: (scope: TenantScope, kind: string) => AsyncIterable<readonly Data[]>;
}

/** A plan is of a moment: after a day, another is made. */
const PLAN_SECONDS = 86_400;
const PRIORITY = 3;
const MAX_RECORDS = 5_000;
const FORGET_MS = 600_000;

const unknown = (importId: string): AppError => new AppError("IMPORT_NOT_FOUND", { details: { importId } });

const countsOf = (plan: readonly PlannedLine[]): Partial<Record<ImportAction, number>> => {
  const counts: Partial<Record<ImportAction, number>> = {};
  for (const { action } of plan) counts[action] = (counts[action] ?? 0) + 1;
  return counts;
};

export const createImports = (deps: ImportsDeps): Feature<typeof contract.imports> => {
  const { db, clock, many, until } = deps;
  const lineBox = createLineBox(deps.secretBox);

  const load = async (scope: TenantScope, kind: string): Promise<readonly Data[]> => {
    const records: Data[] = [];
    for await (const page of deps.recordsOf(scope, kind)) records.push(...page);
    return records;
  };
  const find = async (scope: TenantScope, importId: string): Promise<ImportRow> => {
    const row = await findImport(db, scope, importId);
    if (row === null) throw unknown(importId);
    return row;
  };
  const shown = (scope: TenantScope, row: ImportRow) => withActor(db, scope, toImport(row));

  return {
    handlers: implement(contract.imports, {
      manifest: async ({ scope, fail }, { scopes }) => {
        const may = permissionsIn(scope);
        const sections: ManifestSection[] = [];
        let count = 0;
        for (const { scope: section, kind, permission } of deps.sections) {
          if (IMPORTED_KINDS[kind] === undefined || !may.has(permission) || scopes?.includes(section) === false) continue;
          const records = await load(scope, kind);
          count += records.length;
          if (count > MAX_RECORDS) throw fail("EXPORT_TOO_LARGE", { limit: MAX_RECORDS });
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
      create: async ({ scope, commit }, { document: text, mode, ...options }) => {
        const document = readImport(text, deps);
        const may = permissionsIn(scope);
        const plan = await makePlan(
          document,
          { kindNamed: deps.kindNamed, load: (kind) => load(scope, kind), may: (permission) => may.has(permission) },
          options,
        );
        return commit(async (tx) => {
          const importId = newId("imt");
          const now = clock.now();
          const lines = plan.map(({ calls, ...line }) => ({
            ...line,
            status: calls.length === 0 ? "succeeded" : "pending",
            calls: lineBox.seal(calls, importId, line.n),
          }));
          const row = await insertImport(
            tx,
            scope,
            {
              ...options,
              importId,
              mode,
              format: document.format,
              origin: document.origin,
              planHash: planHashOf(plan),
              lines: plan.length,
              counts: countsOf(plan),
              createdBy: actorOf(scope.principal),
              readyAt: now,
              expiresAt: secondsFromNow(PLAN_SECONDS, now),
            },
            lines,
          );
          return toImport(row);
        });
      },
      apply: ({ scope, commit, fail }, { importId, planHash }) => {
        if (scope.principal.kind === "user") requireRecentSignIn(scope.principal, clock);
        return commit(async (tx, afterwards) => {
          await lockImports(tx, scope);
          const row = await findImport(tx, scope, importId);
          if (row === null) throw unknown(importId);
          if (row.planHash !== planHash) throw fail("IMPORT_PLAN_CHANGED", { importId });
          if (row.status !== "ready" || row.mode === "dry_run")
            throw fail("INVALID_STATE_TRANSITION", { from: row.mode === "dry_run" ? "dry_run" : row.status, to: "applying", allowed: [] });
          const other = await findApplying(tx, scope);
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
          if (row === null) throw unknown(importId);
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
        access: createPresentAccess(deps),
        idOf: (kind) => deps.kindNamed(kind).id,
        handlerOf: (operation) => {
          const [group, name] = operation.split(".") as [keyof Contract, string]; // as: the plan names operations of the contract
          return Reflect.get(deps.handlers[group], name);
        },
      }),
    ],
    jobs: [{ name: "imports.forget", everyMs: FORGET_MS, run: () => forgetImports(db, clock.now()) }],
  };
};
