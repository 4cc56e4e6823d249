// The credentials of repositories: who may do what, until when, and where a repository is.
import { describe, expect, test } from "vitest";
import { REPOSITORY_RIGHTS } from "../../../protocol/index.ts";
import { createTestClock } from "../../../server/core/clock.ts";
import { OBJECT_KINDS, permitsAction, type RepositoryClaim } from "../../../server/core/ports/repository-access.ts";
import { createRepositoryTokens } from "../../../server/features/backup-destinations/repository-tokens.ts";
import { checkCredentials, checkSettings, locate } from "../../../server/features/backup-destinations/settings.ts";
import { createSecretBox } from "../../../server/platform/keys/secrets.ts";

const key = (byte: number) => new Uint8Array(32).fill(byte);

describe("a repository's token", () => {
  const clock = createTestClock();
  const claim: RepositoryClaim = {
    tenantId: "ten_1",
    deviceId: "dev_1",
    repositoryId: "rep_1",
    right: "append",
    mayInitialize: false,
    commandId: "cmd_1",
    expiresAt: new Date(clock.now().getTime() + 60_000),
  };
  const tokens = createRepositoryTokens(createSecretBox(key(1)), clock.now);

  test("says what was signed, until its time is over", () => {
    const token = tokens.mint(claim);
    expect(tokens.read(token)).toEqual(claim);
    clock.advance(60_000);
    expect(tokens.read(token)).toBeNull();
    clock.advance(-60_000);
  });
  test("opens nothing when it was changed, is of another installation or is any text", () => {
    const token = tokens.mint(claim);
    const [text = "", signature = ""] = token.split(".");
    const forged = Buffer.from(JSON.stringify({ t: "ten_1", d: "dev_1", r: "rep_2", g: "prune", n: true, c: null, e: 9e12 })).toString("base64url");
    for (const bad of [`${forged}.${signature}`, `${text}.`, text, "", "a.b.c", "x".repeat(5_000), `${token}x`]) expect(tokens.read(bad)).toBeNull();
    expect(createRepositoryTokens(createSecretBox(key(2)), clock.now).read(token)).toBeNull();
    expect(createRepositoryTokens(createSecretBox(key(2), key(1)), clock.now).read(token)).toEqual(claim);
  });
});

test("each right deletes what its command must, and nothing else", () => {
  const deletes = REPOSITORY_RIGHTS.map((right) => [right, OBJECT_KINDS.filter((kind) => permitsAction({ right, mayInitialize: true }, "delete", kind))]);
  expect(deletes).toEqual([
    ["read", ["locks"]],
    ["append", ["locks"]],
    ["forget", ["locks", "snapshots"]],
    ["prune", ["locks", "snapshots", "index", "data"]],
  ]);
  expect(OBJECT_KINDS.filter((kind) => permitsAction({ right: "read", mayInitialize: true }, "add", kind))).toEqual(["locks"]);
  expect(permitsAction({ right: "read", mayInitialize: true }, "create", "config")).toBe(false);
  const again = { right: "prune", mayInitialize: false } as const;
  expect(OBJECT_KINDS.filter((kind) => !permitsAction(again, "add", kind))).toEqual(["config"]);
  expect(permitsAction(again, "create", "config")).toBe(false);
});

test("a destination takes the settings of its kind and no others, and restic finds its repository", () => {
  expect(() => checkSettings("s3", { endpoint: "https://s3.example" })).toThrow();
  expect(() => checkSettings("gateway", { bucket: "b-1" })).toThrow();
  expect(() => checkCredentials("s3", { accessKeyId: "a" })).toThrow();
  const settings = checkSettings("s3", { endpoint: "https://s3.example/", bucket: "b-1", prefix: "p", region: "r-1" });
  const place = { kind: "s3", settings, credentials: { accessKeyId: "a", secretAccessKey: "s" }, repositoryId: "rep_1" } as const;
  expect(locate(place, null)).toEqual({
    repository: "s3:https://s3.example/b-1/p/rep_1",
    environment: { AWS_ACCESS_KEY_ID: "a", AWS_SECRET_ACCESS_KEY: "s", AWS_DEFAULT_REGION: "r-1" },
  });
  const here = { kind: "gateway", settings: checkSettings("gateway", {}), credentials: null, repositoryId: "rep_1" } as const;
  expect(() => locate(here, null)).toThrow();
  expect(locate(here, { url: "https://edge:8082/", token: "t" }).repository).toBe("rest:https://mooring:t@edge:8082/restic/rep_1/");
});
