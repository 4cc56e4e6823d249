// The guarantees of every signature memory, whatever its implementation.
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import type { CountedSignatureMemory } from "../../server/platform/signatures.ts";

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
};
