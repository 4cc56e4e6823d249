// A stream or an export ends with the refusal that a new call would get, even if its handler ignores its signal, and lets go of what it holds.
import { describe, expect, test } from "vitest";
import { AppError } from "../../server/core/errors.ts";
import { createLazyAbort } from "../../server/core/lifecycle/lazy-abort.ts";
import { entityBlocked } from "../../server/core/ports/security.ts";
import { accessChanged, isRefusal, reauthorizeStream } from "../../server/gateway/call/stream-reauthorizer.ts";

const EVERY_MS = 5;

const setUp = () => {
  const listeners = new Set<() => void>();
  const facts = { refusal: null as AppError | null, isBlocked: false, checks: 0, freed: false };
  const gone = createLazyAbort();
  const stream = reauthorizeStream(
    {
      gone,
      judge: async () => {
        facts.checks += 1;
        return facts.refusal;
      },
      onBlocked: (listener) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
      nowBlocked: () => (facts.isBlocked ? entityBlocked() : null),
    },
    EVERY_MS,
  );
  const read = async (items: AsyncIterable<unknown>): Promise<unknown> => {
    try {
      for await (const _ of stream.watch(items));
      return "ended";
    } catch (error) {
      return error;
    } finally {
      facts.freed = listeners.size === 0;
    }
  };
  return { facts, gone, stream, listeners, read };
};

describe("a stream", () => {
  test("that waits without a look at its signal ends with the refusal", async () => {
    const { facts, stream, read } = setUp();
    const silent = async function* () {
      yield 1;
      await new Promise(() => undefined);
    };
    const outcome = read(silent());
    facts.refusal = new AppError("APP_NOT_FOUND");
    expect(await outcome).toBe(facts.refusal);
    expect([stream.gone.aborted, facts.freed]).toEqual([true, true]);
  });

  test("that never pauses ends with the refusal, too", async () => {
    const { facts, read } = setUp();
    const endless = async function* () {
      for (;;) {
        yield "piece";
        await new Promise(setImmediate);
        if (facts.checks === 2) facts.refusal = new AppError("UNAUTHORIZED");
      }
    };
    expect(await read(endless())).toBe(facts.refusal);
  });

  test("ends at once when its caller is blocked, and does not begin for one who is", async () => {
    const { facts, listeners, read } = setUp();
    const silent = async function* () {
      await new Promise(() => undefined);
      yield 1;
    };
    const outcome = read(silent());
    facts.isBlocked = true;
    for (const listener of listeners) listener();
    expect(await outcome).toMatchObject({ code: "ENTITY_BLOCKED" });
    expect(await read(silent())).toMatchObject({ code: "ENTITY_BLOCKED" });
  });

  test("that ends by itself, or whose caller leaves, is no refusal", async () => {
    const { facts, gone, stream, read } = setUp();
    const waiting = async function* () {
      yield 1;
      await new Promise<void>((resolve) => stream.gone.onAbort(resolve));
    };
    const outcome = read(waiting());
    gone.abort();
    expect([await outcome, facts.freed]).toEqual(["ended", true]);
  });
});

test("a failing database and a used up limit refuse nobody", () => {
  const errors = [new AppError("DATABASE_BUSY"), new AppError("RATE_LIMIT_EXCEEDED"), new Error("broken")];
  expect(errors.map(isRefusal)).toEqual([false, false, false]);
  expect([new AppError("DEVICE_NOT_FOUND"), new AppError("TENANT_SUSPENDED"), accessChanged()].map(isRefusal)).toEqual([true, true, true]);
});
