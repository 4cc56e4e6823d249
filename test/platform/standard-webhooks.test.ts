// One rule says which bytes a `whsec_` secret stands for, and all that signs uses it.
import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { newWebhookSecret, signingKeyOf } from "../../server/core/people/standard-webhooks.ts";

const bytes = Buffer.alloc(25, 0xfb);
const base64 = bytes.toString("base64");

test.each([24, 25, 26, 63, 64])("the Base64 of %i bytes stands for them, with its padding or without", (length) => {
  const key = randomBytes(length);
  const text = key.toString("base64");
  expect(signingKeyOf(`whsec_${text}`)).toEqual(key);
  expect(signingKeyOf(`whsec_${text.replace(/=+$/, "")}`)).toEqual(key);
});

test.each([
  ["without the prefix", base64],
  ["23 bytes", `whsec_${Buffer.alloc(23, 1).toString("base64")}`],
  ["65 bytes", `whsec_${Buffer.alloc(65, 1).toString("base64")}`],
  ["three signs of padding", `whsec_${base64.replace(/=+$/, "")}===`],
  ["one sign of padding of two", `whsec_${base64.replace(/=+$/, "")}=`],
  ["padding that does not belong there", `whsec_${Buffer.alloc(24, 1).toString("base64")}=`],
  ["the alphabet of URLs", `whsec_${bytes.toString("base64url")}`],
  ["a space", `whsec_ ${base64}`],
  ["a line break at the end", `whsec_${base64}\n`],
  ["unused bits that are set", `whsec_${base64.replace(/.==$/, "/==")}`],
  ["another character", `whsec_${base64.replace(/^./, "!")}`],
  ["nothing", "whsec_"],
])("any other text is the key itself: %s", (_name, secret) => {
  expect(signingKeyOf(secret)).toEqual(Buffer.from(secret));
});

test("a secret that the gateway makes stands for 32 bytes", () => {
  expect(signingKeyOf(newWebhookSecret())).toHaveLength(32);
});

test("no other file of the gateway knows the form", () => {
  const server = join(import.meta.dirname, "../../server");
  const knowing = readdirSync(server, { recursive: true, encoding: "utf8" }).filter(
    (name) => name.endsWith(".ts") && readFileSync(join(server, name), "utf8").includes("whsec_"),
  );
  expect(knowing.map((name) => name.split("/").at(-1))).toEqual(["standard-webhooks.ts"]);
});
