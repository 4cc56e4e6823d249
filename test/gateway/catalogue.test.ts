// A broken contract stops the start and names every problem at once; a deprecated operation says so in each answer.

import { describe, expect, test } from "vitest";
import { z } from "zod";
import { contract, type Group, group, mutation, query, type Rest } from "../../protocol/index.ts";
import { createTestClock } from "../../server/core/clock.ts";
import { createLazyAbort } from "../../server/core/lifecycle/lazy-abort.ts";
import { nothingBlocked, unwatched } from "../../server/core/ports/security.ts";
import { createOperationTable } from "../../server/gateway/call/operation-table.ts";
import { createPipeline } from "../../server/gateway/call/pipeline.ts";
import { createLimits } from "../../server/gateway/call/rate-limits.ts";
import type { HttpResponse } from "../../server/gateway/http/http-message.ts";
import { RequestContext } from "../../server/gateway/http/request-context.ts";
import { createRequestInfo } from "../../server/gateway/http/request-info.ts";
import { createRest } from "../../server/gateway/rest/rest.ts";
import { createMemoryRateLimiter } from "../../server/platform/cluster/rate-limit.ts";
import { noAudit } from "../kit/gateway/call.ts";

const open = {
  summary: "x",
  auth: ["public"],
  permission: "public",
  tenancy: "none",
  limit: "none",
  input: z.strictObject({}),
  output: z.object({ ok: z.boolean() }),
} as const;
const user = { ...open, auth: ["user"], permission: "self", limit: "standard" } as const;
const at = (...rest: Rest[]) => ({ rest });

/** The problems that the start reports for these operations; null when it succeeds. */
const problemsOf = (operations: Group["operations"], withHandlers = true): readonly string[] | null => {
  const handlers = withHandlers ? Object.fromEntries(Object.keys(operations).map((name) => [name, async () => ({ ok: true })])) : {};
  try {
    createOperationTable({ own: group({ tag: "Own", operations }) }, { own: { handlers } });
    return null;
  } catch (error) {
    return String((error as Error).message)
      .split("\n")
      .slice(1)
      .map((line) => line.trim());
  }
};

describe("boot checks", () => {
  test("a sound contract starts", () => {
    expect(problemsOf({ a: query({ ...open, ...at("GET /a") }), b: mutation({ ...user, ...at("POST /a") }) })).toBeNull();
  });

  test("two operations on one route stop the start", () => {
    expect(problemsOf({ a: query({ ...user, ...at("GET /a/{one}") }), b: query({ ...user, ...at("GET /b", "GET /a/{other}") }) })).toEqual([
      "own.b: GET /a/{} as user is already taken by own.a",
    ]);
  });

  test("a public operation cannot share a route with one that asks for a credential", () => {
    const [a, b] = [query({ ...open, ...at("GET /a") }), query({ ...user, ...at("GET /a") })];
    expect(problemsOf({ a, b })).toEqual(["own.b: GET /a as user is already taken by own.a"]);
    expect(problemsOf({ b, a })).toEqual(["own.a: GET /a as public is already taken by own.b"]);
  });

  test("operations for different credentials may share a route", () => {
    expect(problemsOf({ a: query({ ...user, ...at("GET /a") }), b: query({ ...user, auth: ["agent"], ...at("GET /a") }) })).toBeNull();
  });

  test("the start names an unknown error code, permission and limit class and a missing handler at once", () => {
    // Nothing but the compiler prevents this.
    const wrong = { ...query({ ...user, ...at("GET /a") }), errors: ["NO_SUCH_CODE"], permission: "device:fly", limit: "sometimes" } as never;
    expect(problemsOf({ a: wrong }, false)).toEqual([
      "own.a: has no handler",
      "own.a: unknown error code NO_SUCH_CODE",
      "own.a: unknown permission device:fly",
      "own.a: unknown limit class sometimes",
    ]);
  });

  test("an operation needs a credential, and a public one may not ask for any", () => {
    expect(problemsOf({ a: { ...query(user), auth: [] }, b: { ...query(user), auth: ["public", "user"] } })).toEqual([
      "own.a: names no credential",
      "own.b: is public and asks for a credential",
    ]);
  });

  test.each([
    ["2026-01-31", "2026-07-31", true],
    ["2026-03-01", "2026-08-31", false],
    ["2026-03-01", "2026-09-01", true],
    ["2026-01-01", "2025-12-01", false],
    ["2026-01-01", "soon", false],
    ["once", "2027-01-01", false],
  ])("deprecation %s with sunset %s is accepted: %s", (since, sunset, fits) => {
    expect(problemsOf({ a: query({ ...open, ...at("GET /a"), deprecated: { since, sunset } }) })).toEqual(
      fits ? null : ["own.a: Sunset must be at least six months after Deprecation"],
    );
  });

  test("the real contract has no duplicate route, unknown name or early sunset", () => {
    expect(() => createOperationTable(contract, {} as never)).toThrow(/has no handler/);
    expect(() => createOperationTable(contract, {} as never)).not.toThrow(/already taken|unknown|Sunset/);
  });
});

const unasked = () => Promise.reject(new Error("not asked for"));

const serve = async (operations: Group["operations"], path: string): Promise<HttpResponse> => {
  const clock = createTestClock();
  const entries = createOperationTable(
    { own: group({ tag: "Own", operations }) },
    { own: { handlers: Object.fromEntries(Object.keys(operations).map((name) => [name, async () => ({ items: [{ ok: true }], total: 3 })])) } },
  );
  const pipeline = createPipeline({
    clock,
    limits: createLimits({ limiter: createMemoryRateLimiter({ clock }), configured: {} }),
    isVisible: unasked,
    scopeOf: async ({ info }) => ({ ...info, tenantId: null, tenant: null, principal: null }),
    idempotency: { find: unasked, claim: unasked, keep: unasked },
    transact: unasked,
    audit: noAudit,
    holdVersion: async () => undefined,
    useSignature: async () => undefined,
    blocks: nothingBlocked,
    watch: unwatched,
    databaseError: () => null,
    duplicateError: () => null,
    record: () => undefined,
    strictOutput: true,
    callTimeoutMs: 1_000,
  });
  const authenticate = async () => ({ kind: "none" }) as const;
  const rest = createRest({ entries, pipeline, clock, infoOf: createRequestInfo([]), authenticate, reauthenticate: authenticate });
  return new Promise((resolve) => {
    const context = new (class extends RequestContext {
      readonly request = { method: "GET", path, query: "", headers: {}, repeated: new Set<string>(), peer: "127.0.0.1" };
      readonly gone = createLazyAbort();
      readonly ending = createLazyAbort();
      readonly body = Promise.resolve(new Uint8Array());
      protected override write(response: HttpResponse): void {
        resolve(response);
      }
      protected override writeStream(): Promise<void> {
        return unasked();
      }
    })();
    void rest.receive(context.request).handle(context);
  });
};

describe("deprecation", () => {
  const list = {
    ...open,
    input: z.strictObject({}),
    output: z.object({ items: z.array(z.object({ ok: z.boolean() })), total: z.int() }),
    list: "page",
  } as const;

  test("each answer of a deprecated list names deprecation, sunset and successor beside its page links", async () => {
    const { status, headers } = await serve(
      { old: query({ ...list, ...at("GET /old"), deprecated: { since: "2026-01-01", sunset: "2026-07-01", successor: "/new" } }) },
      "/v1/old",
    );
    expect([status, headers["Deprecation"], headers["Sunset"]]).toEqual([200, "@1767225600", "Wed, 01 Jul 2026 00:00:00 GMT"]);
    expect(headers["Link"]?.split(", ").map((link) => link.replace(/.*rel="(.*)"/, "$1"))).toEqual([
      "first",
      "last",
      "deprecation",
      "sunset",
      "successor-version",
    ]);
  });

  test("other operations carry no deprecation headers", async () => {
    const { headers } = await serve({ now: query({ ...list, ...at("GET /now") }) }, "/api/v1/now");
    expect([headers["Deprecation"], headers["Sunset"], headers["Link"]]).toEqual([
      undefined,
      undefined,
      '</v1/now?page=1>; rel="first", </v1/now?page=1>; rel="last"',
    ]);
  });
});
