// A batch whose items take their time, or answer with much: what still runs, and what the rest is told.
import { expect, test } from "vitest";
import { contract } from "../../../protocol/index.ts";
import type { AppError } from "../../../server/core/errors.ts";
import type { Call } from "../../../server/core/feature.ts";
import type { InProcessAnswer } from "../../../server/core/ports/in-process.ts";
import { type BatchCallsSettings, createBatchCalls } from "../../../server/features/batch/index.ts";

const answered = (body: string): InProcessAnswer => ({ status: 200, headers: { "x-request-id": "req_item" }, body });

/** Runs three items, each answered by `answer`; `clock` is what an item may move. */
const runThree = async (answer: (path: string, clock: { ms: number }) => Promise<InProcessAnswer>, settings: Partial<BatchCallsSettings> = {}) => {
  const clock = { ms: 0 };
  const made: string[] = [];
  const batch = createBatchCalls({
    clock: { now: () => new Date(0), elapsed: () => clock.ms },
    settings,
    calls: () => ({
      isAllowed: () => true,
      call: (_, { path }) => {
        made.push(path);
        return answer(path, clock);
      },
      refuse: (_, requestId, error: AppError) => ({
        status: error.status,
        headers: { "x-request-id": requestId },
        body: JSON.stringify({ code: error.code, reason: error.details?.["reason"] }),
      }),
    }),
  });
  const input = contract.batch.operations.run.input.parse({ requests: ["/a", "/b", "/c"].map((path) => ({ id: path.slice(1), method: "GET", path })) });
  const origin = { requestId: "req_outer", prefix: "/v1", shape: "b", headers: {}, peer: "192.0.2.1" } as const;
  const { responses } = await batch.handlers.run({ origin } as Call as never, input); // as: all that the handler reads
  return { made, told: responses.map(({ status, body }) => [status, body]) };
};

test("items for which the time is over do not run", async () => {
  const { made, told } = await runThree(async (_, clock) => {
    clock.ms += 10_000;
    return answered("{}");
  });
  expect(made).toEqual(["/a", "/b"]);
  expect(told).toEqual([
    [200, {}],
    [200, {}],
    [503, { code: "BATCH_DEADLINE", reason: "time" }],
  ]);
});

test("an item that does not answer in time gets none, and the ones before keep theirs", async () => {
  const { told } = await runThree(
    async (path, clock) => {
      if (path === "/a") return answered("{}");
      clock.ms = 60_000;
      return new Promise(() => undefined);
    },
    { endWithinMs: 20 },
  );
  expect(told).toEqual([
    [200, {}],
    [503, { code: "BATCH_DEADLINE", reason: "time" }],
    [503, { code: "BATCH_DEADLINE", reason: "time" }],
  ]);
});

test("items for which the answers leave no room do not run", async () => {
  const { made, told } = await runThree(async () => answered(JSON.stringify("x".repeat(600))), { maxAnswerCharacters: 1_000 });
  expect(made).toEqual(["/a", "/b"]);
  expect(told[2]).toEqual([503, { code: "BATCH_DEADLINE", reason: "too_large" }]);
});

test("an answer without a body is null", async () => {
  expect((await runThree(async () => ({ status: 204, headers: {}, body: "" }))).told).toEqual([
    [204, null],
    [204, null],
    [204, null],
  ]);
});
