// What every memory of signatures promises, whatever it stands on.
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import type { CountedSignatureMemory } from "../../server/platform/signatures.ts";

export const signatureSuite = (open: () => CountedSignatureMemory): void => {
  test("the first place is bound, and every later use hears of it", async () => {
    const [memory, key] = [open(), randomUUID()];
    expect(await memory.bind(key, "GET /a")).toBe("GET /a");
    expect(await memory.bind(key, "GET /b")).toBe("GET /a");
    expect(await memory.bind(key, "GET /a")).toBe("GET /a");
    expect(await memory.bind(randomUUID(), "GET /b")).toBe("GET /b");
  });

  test("where no second request can be in the place, later uses hear what was kept or the place, and never their own", async () => {
    const [memory, key] = [open(), randomUUID()];
    expect(await memory.bind(key, "GET /a#1", "GET ")).toBe("GET /a#1");
    expect(["GET ", "GET /a#1"]).toContain(await memory.bind(key, "GET /a#2", "GET "));
    expect(["GET ", "GET /a#1"]).toContain(await memory.bind(key, "POST /a"));
  });

  test("of many that are good once and come at once a single one passes", async () => {
    const [memory, key] = [open(), randomUUID()];
    const places = Array.from({ length: 50 }, (_, n) => `GET /a#${n}`);
    const heard = await Promise.all(places.map((place) => memory.bind(key, place, "")));
    expect(heard.filter((first, n) => first === places[n])).toHaveLength(1);
  });

  test("of many uses at once all hear of one and the same place", async () => {
    const [memory, key] = [open(), randomUUID()];
    const places = await Promise.all(Array.from({ length: 50 }, (_, n) => memory.bind(key, `GET /${n}`)));
    expect(new Set(places).size).toBe(1);
  });
};
