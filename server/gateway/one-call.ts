// One run of a handler: what it is given, how long it may take, and whether its result fits the contract.
import type { Operation } from "../../protocol/index.ts";
import { AppError } from "../core/errors.ts";
import type { Call, Reply } from "../core/feature.ts";
import { createOffSwitch, type OffSwitch } from "../core/off-switch.ts";
import type { OpenScope } from "../core/scope.ts";
import type { Entry } from "./catalogue.ts";

export interface Prepared {
  readonly scope: OpenScope;
  readonly input: unknown;
  readonly key: string | null;
}

export interface Outcome {
  readonly result: unknown;
  readonly reply: Reply;
}

export interface RunDeps {
  /** Tests and development: a result that does not fit its schema is an error. Production logs it and serves. */
  readonly strictOutput: boolean;
  readonly callTimeoutMs: number;
}

/** How often it is looked for calls whose time is over: so much longer than allowed one may last. */
const LOOK_MS = 250;

const fail: Call["fail"] = (code, details, options) => new AppError(code, { details, ...options });

// A class, because its signal is made when somebody asks for it. An object literal with a getter has a hidden class of its own for
// every call, which lies in the old generation and keeps all that the getter sees until the next full collection.
class OneCall implements Call {
  readonly scope: OpenScope;
  readonly fail = fail;
  readonly reply: Reply = { headers: {} };
  readonly idempotencyKey: string | null;
  readonly #gone: OffSwitch;
  readonly #over = createOffSwitch();
  /** Takes back what waits for the caller to leave; null until somebody asks for the signal. */
  #unfollow: (() => void) | null = null;

  constructor({ scope, key }: Prepared, gone: OffSwitch) {
    this.scope = scope;
    this.idempotencyKey = key;
    this.#gone = gone;
  }

  get signal(): AbortSignal {
    this.#unfollow ??= this.#gone.onAbort(() => this.#over.abort());
    return this.#over.signal;
  }

  /** Its time is over. */
  end(): void {
    this.#over.abort();
  }

  /** It has its answer: what it waited for does not keep it any longer. */
  release(): void {
    this.#unfollow?.();
  }
}

interface Waiting {
  /** Its place in the list. */
  at: number;
  looksLeft: number;
  readonly giveUp: () => void;
}

/** Ends what takes too long. One timer for all calls, because a timer of its own costs as much as the rest of a small one. */
const createDeadlines = (lookMs: number) => {
  const waiting: Waiting[] = [];
  let timer: NodeJS.Timeout | undefined;
  // The last takes the place of whoever leaves: nothing is moved up and nothing is allocated.
  const remove = (each: Waiting): void => {
    const last = waiting.pop();
    if (last === undefined || last === each) return;
    waiting[each.at] = last;
    last.at = each.at;
  };
  const look = (): void => {
    for (const each of [...waiting]) {
      each.looksLeft -= 1;
      if (each.looksLeft <= 0) each.giveUp();
    }
    if (waiting.length > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
  return <T>(work: Promise<T>, withinMs: number, onLate: () => void): Promise<T> =>
    new Promise((resolve, reject) => {
      let left = false;
      const leave = (): void => {
        if (!left) remove(each);
        left = true;
      };
      const giveUp = (): void => {
        leave();
        reject(new AppError("SERVICE_UNAVAILABLE", { retryAfter: 1, details: { reason: "timeout" } }));
        onLate();
      };
      // The first look may come at once.
      const each: Waiting = { at: waiting.length, looksLeft: Math.ceil(withinMs / lookMs) + 1, giveUp };
      waiting.push(each);
      timer ??= setInterval(look, lookMs);
      work.then(
        (value) => {
          leave();
          resolve(value);
        },
        (error: unknown) => {
          leave();
          reject(error);
        },
      );
    });
};

/** A long poll asks for its time. */
const waitMs = ({ maxWaitSeconds = 0 }: Operation, input: unknown): number => {
  const wait = maxWaitSeconds === 0 ? 0 : (input as { readonly wait?: unknown } | null)?.wait;
  return typeof wait === "number" ? Math.min(wait, maxWaitSeconds) * 1_000 : 0;
};

const checkOutput = ({ id, op }: Entry, result: unknown): void => {
  const checked = op.output.safeParse(result);
  if (!checked.success) throw new Error(`${id} returned what its contract does not allow: ${checked.error.message}`);
};

export const createRun = ({ strictOutput, callTimeoutMs }: RunDeps) => {
  const within = createDeadlines(Math.min(LOOK_MS, callTimeoutMs));
  return async (entry: Entry, prepared: Prepared, gone: OffSwitch): Promise<Outcome> => {
    const call = new OneCall(prepared, gone);
    const work = entry.handler(call, prepared.input);
    // A subscription gives its events at once, without a promise around them.
    if (entry.op.kind === "subscription") return { result: work, reply: call.reply };
    try {
      const result = await within(Promise.resolve(work), callTimeoutMs + waitMs(entry.op, prepared.input), () => call.end());
      if (strictOutput) checkOutput(entry, result);
      return { result, reply: call.reply };
    } finally {
      call.release();
    }
  };
};
