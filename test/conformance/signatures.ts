// What every memory of signatures promises, whatever it stands on.
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import type { SignatureMemory } from "../../server/platform/signatures.ts";

export const signatureSuite = (open: () => SignatureMemory): void => {
  test("the first place is bound, and every later use hears of it", async () => {
    const [memory, key] = [open(), randomUUID()];
    expect(await memory.bind(key, "GET /a")).toBe("GET /a");
    expect(await memory.bind(key, "GET /b")).toBe("GET /a");
    expect(await memory.bind(key, "GET /a")).toBe("GET /a");
    expect(await memory.bind(randomUUID(), "GET /b")).toBe("GET /b");
  });

  test("of many uses at once all hear of one and the same place", async () => {
    const [memory, key] = [open(), randomUUID()];
    const places = await Promise.all(Array.from({ length: 50 }, (_, n) => memory.bind(key, `GET /${n}`)));
    expect(new Set(places).size).toBe(1);
  });
};
