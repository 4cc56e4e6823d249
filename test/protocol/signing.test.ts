// Version 1 of the agents' signature against fixed vectors: an agent in any language must produce what this file accepts.
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { HEADERS, parseTimestamp, sign, signedHeaders, verify } from "../../protocol/index.ts";

const Vectors = z.object({
  valid: z.array(z.object({ name: z.string(), secret: z.string(), body: z.string(), timestamp: z.string(), signature: z.string() })).min(5),
  timestamps: z.object({ accepted: z.array(z.string()).min(1), refused: z.array(z.string()).min(1) }),
});
const read = (name: string): string => readFileSync(new URL(`../../protocol/${name}`, import.meta.url), "utf8");
const { valid, timestamps } = Vectors.parse(JSON.parse(read("vectors.json")));

/** Replaces the last character with another of its alphabet. */
const bent = (text: string): string => text.slice(0, -1) + (text.endsWith("0") ? "1" : "0");

describe.each(valid)("vector: $name", ({ secret, body, timestamp, signature }) => {
  test("signing text or bytes returns the published signature", () => {
    expect(sign(secret, body, timestamp)).toBe(signature);
    expect(sign(secret, Buffer.from(body, "utf8"), timestamp)).toBe(signature);
    expect(verify(secret, body, timestamp, signature)).toBe(true);
  });
  test.each([
    ["another secret", bent(secret), body, timestamp, signature],
    ["another body", secret, `${body} `, timestamp, signature],
    ["another timestamp", secret, body, timestamp.replace("05", "06"), signature],
    ["another signature", secret, body, timestamp, bent(signature)],
    ["an upper-case signature", secret, body, timestamp, signature.toUpperCase()],
    ["a cut signature", secret, body, timestamp, signature.slice(0, -2)],
    ["a longer signature", secret, body, timestamp, `${signature}00`],
    ["a signature with a non-hex character", secret, body, timestamp, `${signature.slice(0, -1)}g`],
    ["no signature", secret, body, timestamp, ""],
  ])("%s is refused", (_, ...given) => expect(verify(...given)).toBe(false));
});

test("README shows five of the vectors", () => expect(valid.filter(({ signature }) => read("README.md").includes(signature))).toHaveLength(5));

test.each(timestamps.accepted)("the timestamp %j is accepted", (text) => expect(parseTimestamp(text)).not.toBeNull());
test.each(timestamps.refused)("the timestamp %j is refused", (text) => expect(parseTimestamp(text)).toBeNull());

test("characters cannot move between body and timestamp, because the shifted timestamp is malformed", () => {
  const timestamp = "2026-01-02T03:04:05.678Z";
  const signature = sign("secret", "1e+00", timestamp);
  expect(sign("secret", "1e", `+00${timestamp}`)).toBe(signature);
  expect(parseTimestamp(`+00${timestamp}`)).toBeNull();
});

test("four headers carry the identity, the time and the signature over body and time", () => {
  const headers = signedHeaders({ agentId: "agt_1", tenantId: "ten_1", secret: "test-shared-secret-0001" }, "", new Date("2026-01-02T03:04:05.678Z"));
  expect(headers).toEqual({
    [HEADERS.agentId]: "agt_1",
    [HEADERS.tenantId]: "ten_1",
    [HEADERS.timestamp]: "2026-01-02T03:04:05.678Z",
    [HEADERS.signature]: "c5c88f9581a11313b082e5bd31366969c4435174867f1b48b7031c73e20f6c45",
  });
});
