// A batch request, several calls in one: each is made like a call of its own, in order, and what one of them changed stays if a later one fails.
import { contract } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import { AppError } from "../../core/errors.ts";
import { implement } from "../../core/feature.ts";
import type { CallOrigin, InProcessAnswer, NestedCalls } from "../../core/ports/in-process.ts";
import type { Feature } from "../kit.ts";

export interface BatchCallsSettings {
  /** No item begins later, so that the last one ends within the time of the whole call. */
  readonly beginWithinMs: number;
  /** An item that has no answer by then gets none. */
  readonly endWithinMs: number;
  /** No item begins once the answers are larger. */
  readonly maxAnswerCharacters: number;
}
const DEFAULTS: BatchCallsSettings = { beginWithinMs: 18_000, endWithinMs: 27_000, maxAnswerCharacters: 4 * 1_048_576 };
const SHOWN_HEADERS: ReadonlySet<string> = new Set(["x-request-id", "location", "retry-after", "idempotent-replayed"]);
const KEY_ISSUE = { path: "header.idempotency-key", code: "custom", message: "belongs to an item of the batch" };
/** The longest request id that still takes the number of an item. */
const MAX_REQUEST_ID = 61;

export interface BatchCallsDeps {
  readonly clock: Clock;
  readonly calls: () => NestedCalls;
  readonly settings?: Partial<BatchCallsSettings> | undefined;
}

type Item = Parameters<Feature<typeof contract.batch>["handlers"]["run"]>[1]["requests"][number];

const shownHeaders = ({ headers }: InProcessAnswer): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).flatMap(([name, value]) => (SHOWN_HEADERS.has(name.toLowerCase()) ? [[name.toLowerCase(), value]] : [])));

const targetOf = (path: string): { readonly path: string; readonly query: string } => {
  const at = path.indexOf("?");
  return at < 0 ? { path, query: "" } : { path: path.slice(0, at), query: path.slice(at + 1) };
};

const callOf = ({ method, path, headers, body }: Item, requestId: string) => ({
  method,
  ...targetOf(path),
  headers: { ...headers, "x-request-id": requestId, ...(body === undefined ? {} : { "content-type": "application/json" }) },
  ...(body === undefined ? {} : { body: JSON.stringify(body) }),
});

const tooLate = (reason: "time" | "too_large"): AppError => new AppError("BATCH_DEADLINE", { details: { reason }, retryAfter: 1 });

/** Resolves with null when the item has no answer in time; its call goes on. */
const answerWithin = (answer: Promise<InProcessAnswer>, waitMs: number): Promise<InProcessAnswer | null> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), waitMs);
  });
  return Promise.race([answer, late]).finally(() => clearTimeout(timer));
};

export const createBatchCalls = ({ clock, calls, settings: given }: BatchCallsDeps): Feature<typeof contract.batch> => {
  const settings = { ...DEFAULTS, ...given };
  const begin = (origin: CallOrigin) => {
    const began = clock.elapsed();
    const failed = new Set<string>();
    let last: string | null = null;
    let characters = 0;
    const reasonNotToRun = ({ dependsOn }: Item, stopOnError: boolean): AppError | null => {
      const item = dependsOn.find((id) => failed.has(id)) ?? (stopOnError ? last : null);
      if (item !== null) return new AppError("BATCH_DEPENDENCY_FAILED", { details: { item } });
      if (characters > settings.maxAnswerCharacters) return tooLate("too_large");
      return clock.elapsed() - began > settings.beginWithinMs ? tooLate("time") : null;
    };
    return async (item: Item, requestId: string, stopOnError: boolean) => {
      const reason = reasonNotToRun(item, stopOnError);
      const refuse = (error: AppError): InProcessAnswer => calls().refuse(origin, requestId, error);
      const made =
        reason === null ? await answerWithin(calls().call(origin, callOf(item, requestId)), settings.endWithinMs - (clock.elapsed() - began)) : refuse(reason);
      const answer = made ?? refuse(tooLate("time"));
      if (answer.status >= 400) {
        failed.add(item.id);
        last ??= item.id;
      }
      characters += answer.body.length;
      return { id: item.id, status: answer.status, headers: shownHeaders(answer), body: answer.body === "" ? null : JSON.parse(answer.body) };
    };
  };

  return {
    handlers: implement(contract.batch, {
      run: async ({ origin, fail }, { requests, stopOnError }) => {
        if (origin === null) throw new Error("no request carries this batch");
        if (origin.headers["idempotency-key"] !== undefined || origin.headers["x-idempotency-key"] !== undefined)
          throw new AppError("VALIDATION_FAILED", { details: { issues: [KEY_ISSUE] } });
        const forbidden = requests.find(({ method, path }) => !calls().isAllowed(method, targetOf(path).path));
        if (forbidden !== undefined) throw fail("BATCH_PATH_NOT_ALLOWED", { id: forbidden.id, method: forbidden.method, path: forbidden.path });
        const run = begin(origin);
        const responses = [];
        for (const [at, item] of requests.entries()) responses.push(await run(item, `${origin.requestId.slice(0, MAX_REQUEST_ID)}-${at + 1}`, stopOnError));
        return { responses };
      },
    }),
  };
};
