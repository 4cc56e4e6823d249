// Carries out the plan of an import: one step of the engine does the next lines, each by the handlers that people call, as the person who applies it. A
// step that does not commit has done nothing, so a node that dies leaves no line half done.
import { contract, type Permission } from "../../../protocol/index.ts";
import type { Tx } from "../../core/database.ts";
import { isAppError } from "../../core/errors.ts";
import { happened } from "../../core/events.ts";
import type { Committed, KeyedCall } from "../../core/feature.ts";
import { eachAlone } from "../../core/many/each-alone.ts";
import { type ManyKind, type StepFacts, stepperOf } from "../../core/many/types.ts";
import { callIn, type NamedOperation, operationNamed } from "../../core/own-calls.ts";
import type { PresentAccess } from "../../core/people/present-access.ts";
import { type AuditTrail, auditActorOf } from "../../core/ports/audit.ts";
import type { TenantScope } from "../../core/scope.ts";
import type { FeatureKit } from "../kit.ts";
import type { LineBox } from "./line-box.ts";
import { rightsFor } from "./make-plan.ts";
import type { PlannedCall } from "./plan-changes.ts";
import { lineThatMakes, replaceIds } from "./references.ts";
import { endLines, findImport, type ImportRow, type LineEnd, madeRecords, pendingLines, updateImport } from "./store.ts";

export const IMPORT = "import";
/** Carried out together, and each by itself only if one of them fails. */
const LINES_AT_ONCE = 25;
/** A step has so many. */
const SLICES = 2;

type Handler = (call: KeyedCall, input: unknown) => Promise<Committed<unknown>>;

export interface ImportStepperDeps extends Pick<FeatureKit, "emit"> {
  readonly audit: AuditTrail;
  readonly access: PresentAccess;
  readonly lineBox: LineBox;
  readonly handlerOf: (operation: NamedOperation) => Handler;
  /** The name of the id in the records of a kind. */
  readonly idOf: (kind: string) => string;
}

interface ImportStep {
  readonly row: ImportRow;
  readonly scope: TenantScope | null;
  readonly hints: readonly (() => void)[];
}

type AbleStep = Pick<ImportStep, "row"> & { readonly scope: TenantScope };

/** What lines have made, by the numbers of the lines, and what is to be told when they are committed. */
interface Slice {
  readonly made: Map<number, string>;
  readonly hints: (() => void)[];
}

type Line = Awaited<ReturnType<typeof pendingLines>>[number];

const idIn = (result: unknown, name: string): string | null => {
  const id = typeof result === "object" && result !== null ? (Reflect.get(result, name) ?? Reflect.get(result, "id")) : null;
  return typeof id === "string" ? id : null;
};

/** The lines whose records these calls name. */
const madeIn = (calls: readonly PlannedCall[]): readonly number[] => {
  const lines = new Set<number>();
  replaceIds(
    calls.map(({ input }) => input),
    (text) => {
      const line = lineThatMakes(text);
      if (line !== null) lines.add(line);
      return text;
    },
  );
  return [...lines];
};

export const createImportStepper = (deps: ImportStepperDeps) => {
  const claim = async (tx: Tx, { scope, recordId }: StepFacts): Promise<ImportStep | null> => {
    const row = await findImport(tx, scope, recordId);
    if (row === null || row.status !== "applying" || row.appliedBy === null) return null;
    const needs = { permissions: rightsFor(row.mode), unlimitedOnly: true };
    return { row, scope: await deps.access({ tenantId: row.tenantId, workId: row.importId, createdBy: row.appliedBy }, needs), hints: [] };
  };

  /** The calls of one line, one after the other; the first may make the record that the others name. */
  const perform = async (tx: Tx, { row, scope }: AbleStep, line: Line, so: Slice): Promise<LineEnd> => {
    const failed = (code: string, message: string): LineEnd => ({ n: line.n, status: "failed", code, message });
    const calls = deps.lineBox.open(line.calls, row.importId, line.n);
    if (calls === null) return failed("PLAN_UNREADABLE", "The plan was made under another master key. Plan the import again.");
    let recordId = line.recordId;
    for (const { operation, input } of calls) {
      if (madeIn([{ operation, input }]).some((each) => !so.made.has(each)))
        return failed("REFERENCE_FAILED", "Another line, whose record it names, was not carried out.");
      const ready = replaceIds(input, (text) => so.made.get(lineThatMakes(text) ?? 0) ?? text);
      const { permission, input: schema } = operationNamed(operation);
      if (scope.principal.kind === "agent" || !scope.principal.permissions.has(permission as Permission))
        return failed("FORBIDDEN", `Needs the permission ${permission}.`); // as: a test says that each has one
      const { result } = await deps.handlerOf(operation)(
        callIn(tx, scope, (hint) => void so.hints.push(hint)),
        schema.parse(ready),
      );
      recordId ??= idIn(result, deps.idOf(line.kind));
      if (recordId !== null) so.made.set(line.n, recordId);
    }
    return { n: line.n, status: "succeeded", recordId };
  };

  const refused = ({ n }: Line, error: unknown): LineEnd =>
    isAppError(error)
      ? { n, status: "failed", code: error.code, message: error.message }
      : { n, status: "failed", code: "INTERNAL_ERROR", message: "Something went wrong on the server." };

  /** Carries the lines out. What a run that threw has made and hinted at counts for nothing, so a run keeps its own until its end. */
  const performAll = (tx: Tx, work: AbleStep, lines: readonly Line[], whole: Slice): Promise<readonly LineEnd[]> => {
    const run = async (members: readonly Line[]): Promise<readonly LineEnd[]> => {
      const own: Slice = { made: new Map(whole.made), hints: [] };
      const ends: LineEnd[] = [];
      for (const line of members) ends.push(await perform(tx, work, line, own));
      for (const [line, id] of own.made) whole.made.set(line, id);
      whole.hints.push(...own.hints);
      return ends;
    };
    return eachAlone(tx, lines, run, refused);
  };

  const order = async (tx: Tx, work: ImportStep, { scope, hasTime }: StepFacts): Promise<ImportStep> => {
    const { row, scope: caller } = work;
    if (caller === null) return { ...work, row: { ...row, status: "failed", statusReason: "who applied it may not do so any more" } };
    const lines = await pendingLines(tx, scope, row.importId, { from: row.nextLine, limit: SLICES * LINES_AT_ONCE });
    const named = lines.flatMap((line) => madeIn(deps.lineBox.open(line.calls, row.importId, line.n) ?? []));
    const whole: Slice = { made: new Map(await madeRecords(tx, scope, row.importId, named)), hints: [] };
    const ends: LineEnd[] = [];
    deps.audit.begin(tx);
    while (ends.length < lines.length && hasTime())
      ends.push(...(await performAll(tx, { row, scope: caller }, lines.slice(ends.length, ends.length + LINES_AT_ONCE), whole)));
    await endLines(tx, scope, row.importId, ends);
    await deps.audit.append(tx, {
      tenantId: row.tenantId,
      actor: auditActorOf(caller.principal),
      action: "imports.apply",
      resource: { type: "imports", id: row.importId },
      code: null,
      call: null,
      onlyChanges: true,
    });
    const done = ends.filter(({ status }) => status === "succeeded").length;
    const [succeeded, failed] = [row.succeeded + done, row.failed + ends.length - done];
    const isOver = lines.length < SLICES * LINES_AT_ONCE && ends.length === lines.length;
    const status = isOver ? (failed > 0 ? "completed_with_errors" : "completed") : row.status;
    return { ...work, hints: whole.hints, row: { ...row, status, succeeded, failed, nextLine: (ends.at(-1)?.n ?? row.nextLine - 1) + 1 } };
  };

  const write = async (tx: Tx, { row, hints }: ImportStep, { scope, now }: StepFacts) => {
    const { importId, status, statusReason, succeeded, failed, nextLine } = row;
    const isOver = status !== "applying";
    await updateImport(tx, scope, importId, { status, statusReason, succeeded, failed, nextLine, ...(isOver ? { completedAt: now } : {}) });
    const { completed, failed: failedEvent } = contract.imports.events;
    const told = { importId: importId as `imt_${string}`, status, succeeded, failed }; // as: the column holds nothing else
    if (isOver) await deps.emit(tx, [status === "failed" ? happened(scope, failedEvent, importId, told) : happened(scope, completed, importId, told)]);
    return {
      next: isOver ? null : now,
      notify: () => {
        for (const hint of hints) hint();
      },
    };
  };

  const kind: ManyKind<ImportStep> = {
    kind: IMPORT,
    claim,
    pull: (_tx, work) => Promise.resolve(work),
    judge: (_tx, work) => Promise.resolve(work),
    order,
    write,
  };
  return stepperOf(kind);
};
