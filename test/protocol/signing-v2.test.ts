// Version 2 of the agents' signature against fixed vectors.
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { HEADERS_V2, restKey, signedHeadersV2, signV2, verify, verifyV2 } from "../../protocol/index.ts";

const Vector = z.object({
  name: z.string(),
  secret: z.string(),
  tenantId: z.string(),
  agentId: z.string(),
  timestamp: z.string(),
  nonce: z.string(),
  method: z.string(),
  path: z.string(),
  query: z.string(),
  body: z.string(),
  signature: z.string(),
});
const read = (name: string): string => readFileSync(new URL(`../../protocol/${name}`, import.meta.url), "utf8");
const { v2 } = z
  .object({ v2: z.object({ restKey: z.object({ secret: z.string(), keyHex: z.string() }), valid: z.array(Vector).min(2) }) })
  .parse(JSON.parse(read("vectors.json")));

test("the document of the levels shows two of the vectors", () =>
  expect(v2.valid.filter(({ signature }) => read("levels.md").includes(signature))).toHaveLength(2));

test("the key is derived from the secret as published", () => expect(restKey(v2.restKey.secret).toString("hex")).toBe(v2.restKey.keyHex));

describe.each(v2.valid)("vector: $name", (vector) => {
  const good = { ...vector };
  const check = ({ secret, ...rest }: typeof good): boolean => verifyV2(secret, rest, rest);
  test("signing returns the published signature", () => {
    expect(signV2(vector.secret, vector, vector)).toBe(vector.signature);
    expect(check(good)).toBe(true);
  });
  test("the signature holds under the other prefix and with another order of the query", () => {
    expect(check({ ...good, path: `/api${good.path.replace(/^\/api/, "")}`, query: good.query.split("&").reverse().join("&") })).toBe(true);
  });
  test.each([
    ["method", "PUT"],
    ["path", "/v1/agent/me"],
    ["query", "a=b"],
    ["body", "x"],
    ["tenantId", "ten_2"],
    ["agentId", "agt_2"],
    ["secret", "another"],
    ["timestamp", "2026-01-02T03:04:05.679Z"],
    ["nonce", "AAECAwQFBgcICQoLDA0ODg"],
    ["nonce", ""],
    ["nonce", `${vector.nonce}A`],
    ["signature", vector.signature.toUpperCase()],
    ["signature", vector.signature.slice(2)],
    ["signature", ""],
  ])("another %s (%s) is refused", (field, value) => expect(check({ ...good, [field]: value })).toBe(false));
});

test("the headers carry both signature versions and a fresh nonce", () => {
  const identity = { agentId: "agt_1", tenantId: "ten_1", secret: "s" };
  const at = new Date("2026-01-02T03:04:05.678Z");
  const [one, two] = [1, 2].map(() => signedHeadersV2(identity, { method: "GET", target: "/v1/agent/me?x=1", body: "" }, at));
  expect(verify("s", "", at.toISOString(), one?.["x-svc-signature"] ?? "")).toBe(true);
  expect(one?.[HEADERS_V2.version]).toBe("2");
  expect(one?.[HEADERS_V2.nonce]).not.toBe(two?.[HEADERS_V2.nonce]);
});
