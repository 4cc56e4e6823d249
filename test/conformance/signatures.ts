// The guarantees of every signature memory, whatever its implementation.
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import type { CountedSignatureMemory } from "../../server/platform/signature-memory.ts";

export const signatureSuite = (open: () => CountedSignatureMemory): void => {
  test("a signature is bound to its first route, and every later use learns that route", async () => {
    const [memory, key] = [open(), randomUUID()];
    expect(await memory.bind(key, "GET /a")).toBe("GET /a");
    expect(await memory.bind(key, "GET /b")).toBe("GET /a");
    expect(await memory.bind(key, "GET /a")).toBe("GET /a");
    expect(await memory.bind(randomUUID(), "GET /b")).toBe("GET /b");
  });

  test("a signature that is good once never returns a later use's own route", async () => {
    const [memory, key] = [open(), randomUUID()];
    expect(await memory.bind(key, "GET /a#1", "GET ")).toBe("GET /a#1");
    expect(["GET ", "GET /a#1"]).toContain(await memory.bind(key, "GET /a#2", "GET "));
    expect(["GET ", "GET /a#1"]).toContain(await memory.bind(key, "POST /a"));
  });

  test("of 50 concurrent uses of a signature that is good once, one passes", async () => {
    const [memory, key] = [open(), randomUUID()];
    const places = Array.from({ length: 50 }, (_, n) => `GET /a#${n}`);
    const heard = await Promise.all(places.map((place) => memory.bind(key, place, "")));
    expect(heard.filter((first, n) => first === places[n])).toHaveLength(1);
  });

  test("50 concurrent uses of a signature all learn the same route", async () => {
    const [memory, key] = [open(), randomUUID()];
    const places = await Promise.all(Array.from({ length: 50 }, (_, n) => memory.bind(key, `GET /${n}`)));
    expect(new Set(places).size).toBe(1);
  });

  test("a claim passes once, and its node refuses the next use at once", async () => {
    const [memory, key] = [open(), randomUUID()];
    const passes = async (at: CountedSignatureMemory, place: string): Promise<boolean> => {
      const { first, shared } = at.claim(key, place, "");
      return first === place && (shared === null || (await shared) === place);
    };
    const first = passes(memory, "GET /a#1");
    expect(memory.claim(key, "GET /a#2", "").first).toBe("");
    expect(await first).toBe(true);
    expect(await memory.bind(key, "GET /a#3")).not.toBe("GET /a#3");
  });

  test("of 50 claims of a signature at the same time, one passes", async () => {
    const [memory, key] = [open(), randomUUID()];
    const claims = Array.from({ length: 50 }, (_, n) => ({ place: `GET /a#${n}`, ...memory.claim(key, `GET /a#${n}`, "") }));
    const heard = await Promise.all(claims.map(async ({ place, first, shared }) => first === place && (shared === null || (await shared) === place)));
    expect(heard.filter(Boolean)).toHaveLength(1);
  });
};
