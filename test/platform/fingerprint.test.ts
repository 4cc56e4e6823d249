// The digest that binds an idempotency key to its request: stored, so it must never change, and equal however the request came together.
import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { fingerprint, fingerprintWith } from "../../server/core/rows/fingerprint.ts";

const shared = { type: "echo", payload: { b: [1, { z: null, y: undefined }], a: "ü" }, ttlSeconds: undefined, requiresAck: true };

test("a fingerprint is SHA-256 of the JSON with sorted names and without undefined fields", () => {
  const text = '{"deviceId":"dev_1","payload":{"a":"ü","b":[1,{"z":null}]},"requiresAck":true,"type":"echo"}';
  expect(fingerprint({ ...shared, deviceId: "dev_1" })).toEqual(createHash("sha256").update(text).digest());
});

test("requests that share fields have the fingerprints that they have by themselves", () => {
  const hashOf = fingerprintWith(shared);
  for (const deviceId of ["dev_1", "dev_2", "__proto__", '"},{'])
    for (const own of [{ deviceId }, { zone: { b: 1, a: 2 }, deviceId }, { deviceId, absent: undefined }])
      expect(hashOf(own)).toEqual(fingerprint({ ...own, ...shared }));
});
