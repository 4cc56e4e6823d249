// The one ordered list of steps that every call takes, over REST and tRPC alike:
// limit by caller → check credential, tenant, role → parse → limit by input → own device → replay → idempotency → run → check output → record.
import { haveSameLimits, isLimited } from "../../core/access.ts";
import type { Clock } from "../../core/clock.ts";
import { AppError, isAppError } from "../../core/errors.ts";
import type { LazyAbort } from "../../core/lifecycle/lazy-abort.ts";
import type { IdempotencyStore } from "../../core/ports/idempotency.ts";
import type { RateLimitVerdict } from "../../core/ports/rate-limiter.ts";
import { type Blocks, entityBlocked, isBlocked, type SecurityWatch } from "../../core/ports/security.ts";
import type { HeldRecord } from "../../core/rows/row-versions.ts";
import { actorOf, type OpenScope, type SystemScope } from "../../core/scope.ts";
import { CALL_BUDGET_MS, classOf, currentWork, runAs, Work } from "../../core/work.ts";
import type { Identity, ScopeRequest } from "../auth/identity.ts";
import type { RequestInfo } from "../http/request-info.ts";
import { parseInput } from "../rest/parse.ts";
import { type CallRecord, type Notes, refusalReasonOf } from "./call-record.ts";
import { createIdempotentCalls, ReplayedRefusal, readKey } from "./idempotency.ts";
import type { Entry } from "./operation-table.ts";
import { type Limits, type Taken, tighter } from "./rate-limits.ts";
import { createRun, type RunDeps } from "./run-handler.ts";
import { watchRefusal } from "./security-signals.ts";
import type { SignatureUse } from "./signature-replay.ts";
import { accessChanged, isRefusal, reauthorizeStream } from "./stream-reauthorizer.ts";

export interface PipelineDeps extends RunDeps {
  readonly clock: Clock;
  readonly limits: Pick<Limits, "admit" | "admitInput">;
  readonly scopeOf: (request: ScopeRequest) => Promise<OpenScope>;
  readonly idempotency: IdempotencyStore;
  /** Whether a caller who is limited to some devices sees this one. */
  readonly isVisible: (scope: SystemScope, deviceId: string) => Promise<boolean>;
  /** Rejects a signature that was used before in a way that forbids this use. */
  readonly useSignature: (use: SignatureUse) => Promise<void>;
  /** Hears of refusals that look like an attack. */
  readonly watch: SecurityWatch;
  /** The answer to a failure of the database; null for a defect. */
  readonly databaseError: (error: unknown) => AppError | null;
  /** The declared error for a second row under a unique index; null for every other failure. */
  readonly duplicateError: (error: unknown, input: unknown) => AppError | null;
  /** Counts the call for the metrics; the log reads the notes. */
  readonly record: (call: CallRecord) => void;
}

export interface CallRequest {
  readonly entry: Entry;
  /** Proves the credential; rejects with UNAUTHORIZED and its kin. */
  readonly identify: () => Promise<Identity>;
  /** Proves it again while the call lasts; a failure counts against nobody. */
  readonly reidentify: () => Promise<Identity>;
  readonly info: RequestInfo;
  readonly transport: "rest" | "trpc";
  readonly tenantHeader: string | undefined;
  /** Gathers the input; throws when its form is wrong. */
  readonly readInput: () => unknown;
  /** As sent; unchecked. */
  readonly idempotencyKey: string | undefined;
  /** If-Match, for a change without a `version` of its own; `field` of the input names the record. */
  readonly held?: HeldRecord | undefined;
  /** What an agent signed: "METHOD path" and the signature. */
  readonly signed: Omit<SignatureUse, "agentId" | "replay"> | null;
  /** Fires when the caller leaves. */
  readonly gone: LazyAbort;
  readonly notes: Pick<Notes, "calls">;
  /** The same for all calls of a batch. */
  readonly taken?: Taken;
}

export interface Answer {
  readonly status: number;
  readonly input: unknown;
  readonly result: unknown;
  readonly headers: Readonly<Record<string, string>>;
  readonly cookies: readonly string[] | undefined;
  readonly verdict: RateLimitVerdict | null;
  readonly scope: OpenScope;
}

export interface Failure {
  readonly error: AppError;
  readonly verdict: RateLimitVerdict | null;
  readonly headers: Readonly<Record<string, string>>;
}

type Ended = { readonly ok: true; readonly answer: Answer } | { readonly ok: false; readonly failure: Failure };

/** What the pipeline has learned about a call when it ends, in success or failure. */
interface Seen {
  verdict: RateLimitVerdict | null;
  scope: OpenScope | null;
  deviceId: string | null;
}

const refuseBlocked = (scope: OpenScope, blocks: Pick<Blocks, "any" | "refuses">): void => {
  if (isBlocked(scope, blocks)) throw entityBlocked();
};

const REPLAYED = { "Idempotent-Replayed": "true" } as const;

const ownDevice = (scope: OpenScope, input: unknown): void => {
  if (scope.principal?.kind !== "agent") return;
  const deviceId = (input as Record<string, unknown> | null)?.["deviceId"];
  if (typeof deviceId === "string" && deviceId !== scope.principal.deviceId) throw new AppError("FORBIDDEN", { details: { reason: "not_own_device" } });
};

const deviceOf = ({ principal }: OpenScope, input: unknown): string | null => {
  if (principal?.kind === "agent") return principal.deviceId;
  const deviceId = (input as Record<string, unknown> | null)?.["deviceId"];
  return typeof deviceId === "string" ? deviceId : null;
};

/** A limited caller gets for any other device the answer of one that does not exist, whatever the operation's handler would ask first. */
const checkDevice = async ({ op }: Entry, scope: OpenScope, input: unknown, isVisible: PipelineDeps["isVisible"]): Promise<void> => {
  const deviceId = (input as Record<string, unknown> | null)?.["deviceId"];
  if (typeof deviceId !== "string" || scope.tenantId === null || !op.errors.includes("DEVICE_NOT_FOUND")) return;
  if (!(await isVisible({ ...scope, tenantId: scope.tenantId }, deviceId))) throw new AppError("DEVICE_NOT_FOUND", { details: { deviceId } });
};

/** Its result goes on after the call has been answered. */
const lastsBeyond = ({ op }: Entry): boolean => op.kind === "subscription" || op.plain?.pieces === true;
const isIterable = (result: unknown): result is AsyncIterable<unknown> => typeof result === "object" && result !== null && Symbol.asyncIterator in result;

const workOf = ({ entry, signed }: CallRequest): Work => new Work(classOf(entry.op, signed !== null), CALL_BUDGET_MS);

type Attempt = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly error: unknown };
const attempt = (read: () => unknown): Attempt => {
  try {
    return { ok: true, value: read() };
  } catch (error) {
    return { ok: false, error };
  }
};

/** OTLP costs too much to read for a caller who is beyond its limit, and never names the tenant. */
const LATER: Attempt = { ok: false, error: null };
const settled = (gathered: Attempt, read: () => unknown): unknown => {
  if (gathered === LATER) return read();
  if (!gathered.ok) throw gathered.error;
  return gathered.value;
};

export const createPipeline = (deps: PipelineDeps) => {
  const { clock, limits } = deps;

  const toAppError = (error: unknown): AppError => {
    if (isAppError(error)) return error;
    return deps.databaseError(error) ?? new AppError("INTERNAL_ERROR", { cause: error });
  };

  const runHandler = createRun(deps);
  const run: typeof runHandler = async (entry, prepared, gone) => {
    try {
      return await runHandler(entry, prepared, gone);
    } catch (error) {
      throw isAppError(error) ? error : (deps.duplicateError(error, prepared.input) ?? error);
    }
  };

  const once = createIdempotentCalls({ ...deps, toAppError });

  /** Checks a call that lasts again: its caller, then the record that it is about, as a read of that record would. */
  const judge = (request: CallRequest, opened: OpenScope, input: unknown): Promise<AppError | null> =>
    runAs(workOf(request), () => judged(request, opened, input));

  const judged = async (request: CallRequest, opened: OpenScope, input: unknown): Promise<AppError | null> => {
    const { entry, info, tenantHeader, gone } = request;
    try {
      const scope = await deps.scopeOf({ entry, identity: await request.reidentify(), info, tenantHeader, rawInput: input });
      refuseBlocked(scope, deps.blocks);
      if (isLimited(scope)) await checkDevice(entry, scope, input, deps.isVisible);
      if (entry.record !== undefined) await run(entry.record, { scope, input, key: null }, gone);
      // Without a record, what the call shows depends on the limits that it began with.
      else if (!haveSameLimits(opened, scope)) return accessChanged();
      return null;
    } catch (error) {
      return isRefusal(error) ? error : null;
    }
  };

  /** Runs a handler that the caller may call, for as long as the caller may. */
  const perform = async (request: CallRequest, { scope, input, key }: { scope: OpenScope; input: unknown; key: string | null }) => {
    const { entry, held, gone, info } = request;
    const prepared = { scope, input, key, origin: info, held, judge: () => judge(request, scope, input) };
    if (!lastsBeyond(entry)) {
      if (key === null || entry.op.idempotency !== "key") return run(entry, prepared, gone);
      return once({ operation: entry.id, scope, input, key, run: (keeper) => run(entry, { ...prepared, keeper }, gone) });
    }
    const nowBlocked = (): AppError | null => (isBlocked(scope, deps.blocks) ? entityBlocked() : null);
    const reauthorizer = reauthorizeStream({ gone, judge: prepared.judge, onBlocked: deps.blocks.onBlocked, nowBlocked });
    const { result, reply } = await run(entry, prepared, reauthorizer.gone);
    return { result: isIterable(result) ? reauthorizer.watch(result) : result, reply };
  };

  const answer = async (request: CallRequest, seen: Seen): Promise<Answer> => {
    const { entry, info, tenantHeader } = request;
    const { op } = entry;
    const identity = await request.identify();
    // Authorization fails before validation does, and a malformed request counts against its caller's limit.
    const gathered = op.otlp === true ? LATER : attempt(request.readInput);
    const scope = await deps.scopeOf({ entry, identity, info, tenantHeader, rawInput: gathered.ok ? gathered.value : {} });
    seen.scope = scope;
    currentWork().tenantId = scope.tenantId;
    refuseBlocked(scope, deps.blocks);
    const admitted = limits.admit(op, scope, request.taken);
    if (admitted !== null) seen.verdict = await admitted;
    const rawInput = settled(gathered, request.readInput);
    ownDevice(scope, rawInput);
    const input = parseInput(op, rawInput);
    seen.deviceId = deviceOf(scope, input);
    if (isLimited(scope)) await checkDevice(entry, scope, input, deps.isVisible);
    const byInput = limits.admitInput(op, scope, input);
    if (byInput !== null) seen.verdict = tighter(seen.verdict, await byInput);
    if (request.signed !== null && identity.kind === "agent")
      await deps.useSignature({ agentId: identity.record.agentId, replay: op.replay, ...request.signed });
    const key = op.idempotency === "none" || scope.principal === null ? null : readKey(request.idempotencyKey);
    const { result, reply } = await perform(request, { scope, input, key });
    const headers = reply.replayed === true ? { ...reply.headers, ...REPLAYED } : reply.headers;
    return { status: reply.status ?? op.status, input, result, headers, cookies: reply.cookies, verdict: seen.verdict, scope };
  };

  const recorded = async (request: CallRequest): Promise<Ended> => {
    const startedAt = clock.elapsed();
    const seen: Seen = { verdict: null, scope: null, deviceId: null };
    const note = (status: number, error: AppError | null): void => {
      const record: CallRecord = {
        operation: request.entry.id,
        transport: request.transport,
        status,
        code: error?.code ?? null,
        reason: refusalReasonOf(error),
        durationMs: clock.elapsed() - startedAt,
        requestId: request.info.requestId,
        tenantId: seen.scope?.tenantId ?? null,
        actor: actorOf(seen.scope?.principal ?? null),
        deviceId: seen.deviceId,
        ...(error !== null && error.status >= 500 ? { cause: error.cause ?? error } : {}),
      };
      request.notes.calls.push(record);
      deps.record(record);
    };
    try {
      const answered = await answer(request, seen);
      note(answered.status, null);
      return { ok: true, answer: answered };
    } catch (error) {
      const isReplay = error instanceof ReplayedRefusal;
      const failure = toAppError(isReplay ? error.refusal : error);
      note(failure.status, failure);
      watchRefusal(failure, request, seen.scope, deps.watch);
      return { ok: false, failure: { error: failure, verdict: seen.verdict, headers: isReplay ? REPLAYED : {} } };
    }
  };

  /** Never rejects: every call ends as an answer or a failure and is recorded once. */
  const call = (request: CallRequest): Promise<Ended> => {
    const work = workOf(request);
    return runAs(work, () => recorded(request)).finally(() => work.end());
  };

  return { call, toAppError };
};
export type Pipeline = ReturnType<typeof createPipeline>;
