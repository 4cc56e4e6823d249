// Runs a handler: hands it its call, bounds its time, and checks its result against the contract.
import type { Operation } from "../../../protocol/index.ts";
import type { Tx } from "../../core/database.ts";
import { AppError, isAppError } from "../../core/errors.ts";
import type { SqlTx } from "../../core/events.ts";
import type { Call, Commit, Committed, KeyedCall, Reply } from "../../core/feature.ts";
import { createLazyAbort, type LazyAbort } from "../../core/lifecycle/lazy-abort.ts";
import type { AuditTrail } from "../../core/ports/audit.ts";
import type { CallOrigin } from "../../core/ports/in-process.ts";
import { type Blocks, entityBlocked, isBlocked } from "../../core/ports/security.ts";
import type { HeldRecord, HoldVersion } from "../../core/rows/row-versions.ts";
import type { OpenScope } from "../../core/scope.ts";
import { keepingClass } from "../../core/work.ts";
import { auditEntryOf } from "./audit-entry.ts";
import { createDeadlines, outOfTime } from "./deadlines.ts";
import type { Entry } from "./operation-table.ts";

export interface Prepared {
  readonly scope: OpenScope;
  readonly input: unknown;
  readonly key: string | null;
  readonly origin?: CallOrigin | undefined;
  readonly keeper?: Keeper;
  /** If-Match: the effect happens only while the record has one of these versions. */
  readonly held?: HeldRecord | undefined;
  /** Whether the call would be let in now: null, or the refusal that it would get. Never rejects. */
  readonly judge?: (() => Promise<AppError | null>) | undefined;
}

export interface CallOutcome {
  readonly result: unknown;
  readonly reply: Reply;
}

/** One transaction; `run` may be repeated. Resolves only when the database has confirmed the COMMIT. */
export type Transact = <T>(run: (tx: Tx) => Promise<T>) => Promise<T>;

/** What an operation is about to answer: its result, or a refusal that lets its effect stand. */
export interface Answered {
  readonly status: number;
  readonly result: unknown;
}

/** Keeps the answer of a call under its key, in the transaction of its effect. */
export interface Keeper {
  /** Rejects when the call must not have its effect: it has happened already, or another transaction is about it. */
  claim(tx: SqlTx): Promise<void>;
  keep(tx: SqlTx, answer: Answered): Promise<void>;
}

export interface RunDeps {
  readonly transact: Transact;
  readonly audit: AuditTrail;
  readonly holdVersion: HoldVersion;
  /** Tests and development: a result that does not fit its schema is an error. Production logs it and serves. */
  readonly strictOutput: boolean;
  readonly callTimeoutMs: number;
  /** Callers whom the installation or their tenant refuses. */
  readonly blocks: Pick<Blocks, "any" | "refuses" | "onBlocked">;
}

const fail: Call["fail"] = (code, details, options) => new AppError(code, { details, ...options });

/** What the calls of a gateway share. */
interface Shared {
  readonly transact: Transact;
  readonly audit: AuditTrail;
  readonly holdVersion: HoldVersion;
  readonly check: (entry: Entry, result: unknown) => void;
}

/** A long poll names its own waiting time. */
const waitMs = ({ maxWaitSeconds = 0 }: Operation, input: unknown): number => {
  const { wait, timeout = wait } = (maxWaitSeconds === 0 ? {} : (input ?? {})) as { readonly wait?: unknown; readonly timeout?: unknown };
  return typeof timeout === "number" ? Math.min(timeout, maxWaitSeconds) * 1_000 : 0;
};

// A class, because it makes its signal on first use. V8 gives an object literal with a getter a hidden class per call, which lives in the old
// generation and keeps everything that the getter closes over until the next full collection.
class OneCall implements KeyedCall {
  readonly scope: OpenScope;
  readonly fail = fail;
  readonly reply: Reply = { headers: {} };
  readonly idempotencyKey: string | null;
  readonly origin: CallOrigin | null;
  readonly #entry: Entry;
  readonly #input: unknown;
  readonly #gone: LazyAbort;
  readonly #keeper: Keeper | undefined;
  readonly #held: HeldRecord | undefined;
  readonly #shared: Shared;
  readonly #over = createLazyAbort();
  /** Stops following the caller's departure; null until a handler asks for the signal. */
  #unfollow: (() => void) | null = null;
  #isLate = false;
  #committed = false;
  /** Only a call that lasts asks for its signal, or for time to wait. */
  #lasts: boolean;
  #isJudging = false;
  readonly #judge: Prepared["judge"];

  constructor(entry: Entry, { scope, input, key, origin, keeper, held, judge }: Prepared, gone: LazyAbort, shared: Shared) {
    this.scope = scope;
    this.idempotencyKey = key;
    this.origin = origin ?? null;
    this.#entry = entry;
    this.#input = input;
    this.#gone = gone;
    this.#keeper = keeper;
    this.#held = held;
    this.#shared = shared;
    this.#judge = judge;
    this.#lasts = waitMs(entry.op, input) > 0;
  }

  get signal(): AbortSignal {
    this.#lasts = true;
    this.#unfollow ??= this.#gone.onAbort(() => this.#over.abort());
    return this.#over.signal;
  }

  get commit(): Commit<unknown> {
    return (effect) => this.#commit(effect);
  }

  async #commit(effect: Parameters<Commit<unknown>>[0]): Promise<Committed<unknown>> {
    const { transact, audit, holdVersion, check } = this.#shared;
    // A second transaction would write its effect without the key.
    if (this.#committed) throw new Error(`${this.#entry.id} commits twice`);
    this.#committed = true;
    let hints: (() => void)[] = [];
    let handedOver = false;
    try {
      const result = await transact(async (tx) => {
        hints = [];
        handedOver = false;
        // The log tells of what the effect changes, and not of this.
        if (this.#held !== undefined) await holdVersion(tx, this.scope, this.#held, this.#input);
        audit.begin(tx);
        await this.#keeper?.claim(tx);
        const answer = await effect(tx, (hint) => void hints.push(hint));
        if (!isAppError(answer)) check(this.#entry, answer);
        // The caller already has its timeout.
        if (this.#isLate) throw outOfTime();
        await this.#keeper?.keep(tx, { status: this.reply.status ?? this.#entry.op.status, result: answer });
        await audit.append(tx, auditEntryOf(this.#entry, this.scope, { input: this.#input, result: answer }));
        handedOver = true;
        return answer;
      });
      if (isAppError(result)) throw result;
      return { result } as Committed<unknown>;
    } finally {
      if (handedOver) for (const hint of hints) hint();
    }
  }

  /** Its time is over. */
  end(): void {
    this.#isLate = true;
    this.#over.abort();
  }

  /** Checks a call that lasts again, one check at a time. Null: there is nothing against it. */
  async again(): Promise<AppError | null> {
    if (!this.#lasts || this.#judge === undefined || this.#isJudging) return null;
    this.#isJudging = true;
    try {
      return await this.#judge();
    } finally {
      this.#isJudging = false;
    }
  }

  /** Lets go of the caller once the call has its answer. */
  release(): void {
    this.#unfollow?.();
  }
}

const checkOutput: Shared["check"] = ({ id, op }, result) => {
  const checked = op.output.safeParse(result);
  if (!checked.success) throw new Error(`${id} returned what its contract does not allow: ${checked.error.message}`);
};

export const createRun = ({ transact, audit, holdVersion, strictOutput, callTimeoutMs, blocks }: RunDeps) => {
  const within = createDeadlines(callTimeoutMs);
  const shared: Shared = { transact, audit, holdVersion, check: strictOutput ? checkOutput : () => undefined };
  return async (entry: Entry, prepared: Prepared, gone: LazyAbort): Promise<CallOutcome> => {
    const call = new OneCall(entry, prepared, gone, shared);
    const work = entry.handler(call, prepared.input);
    // A subscription gives its events at once, without a promise around them.
    if (entry.op.kind === "subscription") return { result: keepingClass(work), reply: call.reply };
    const { scope } = prepared;
    const wait = waitMs(entry.op, prepared.input);
    // A caller who is blocked while waiting gets an answer at once, and it is not the one that the call waits for.
    const stopListening = wait === 0 ? null : blocks.onBlocked(() => isBlocked(scope, blocks) && call.end());
    try {
      const result = await within(Promise.resolve(work), callTimeoutMs + wait, call);
      if (wait > 0 && isBlocked(scope, blocks)) throw entityBlocked();
      // The commit has checked a keyed operation.
      if (entry.op.idempotency === "key") return { result: (result as Committed<unknown>).result, reply: call.reply };
      shared.check(entry, result);
      return { result: keepingClass(result), reply: call.reply };
    } finally {
      stopListening?.();
      call.release();
    }
  };
};
