// Pairing codes have eight letters, so the gateway limits wrong guesses, per address and in total.
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { LIMITS } from "../../../protocol/index.ts";
import { newCode } from "../../../server/features/pairing/codes.ts";
import { type Answer, anonymous, startWorld, type World } from "../../kit/gateway/world.ts";

const PER_ADDRESS = LIMITS["pairing.guess"][0].limit;
const TOGETHER = LIMITS["pairing.guess"][1].limit;

let world: World;
beforeAll(async () => {
  world = await startWorld({ TRUSTED_PROXIES: "127.0.0.0/8" });
});
afterAll(() => world.close());

const from = (address: string) => ({ "x-forwarded-for": address });
/** Guesses by the one operation that anybody may call with nothing but a code. */
const report = (code: string, address: string, at: World = world): Promise<Answer> =>
  at.call(anonymous, "PATCH", `/v1/pairing/${code}/progress`, { headers: from(address), body: { currentStep: "preflight_check" } });
const initiate = async (address: string, at: World = world): Promise<string> =>
  (await at.call(anonymous, "POST", "/v1/pairing/initiate", { headers: from(address), body: { device_fingerprint: randomUUID() } })).body.data.pairing_code;
const outcome = ({ status, body }: Answer) => [status, body.details?.bucket ?? body.code ?? "done"];

test("after ten wrong guesses in a minute an address is refused even with a right code, and other addresses are not", async () => {
  const code = await initiate("192.0.2.1");
  for (let guess = 0; guess < PER_ADDRESS; guess += 1) expect(outcome(await report(newCode(), "192.0.2.2"))).toEqual([404, "PAIRING_CODE_NOT_FOUND"]);
  const refused = await report(code, "192.0.2.2");
  expect(outcome(refused)).toEqual([429, "pairing.guess.ip"]);
  expect(refused.body.retryAfter).toBeGreaterThanOrEqual(1);
  expect((await report(code, "192.0.2.1")).status).toBe(200);
});

test("wrong guesses from one IPv6 network count together", async () => {
  for (let guess = 0; guess < PER_ADDRESS; guess += 1) await report(newCode(), `2001:db8::${guess + 1}`);
  expect(outcome(await report(newCode(), "2001:db8::ffff"))).toEqual([429, "pairing.guess.ip"]);
});

test("wrong guesses count through every operation that takes a code", async () => {
  const tenant = await world.tenant();
  const headers = from("192.0.2.3");
  const post = async (path: string, body: object) => world.call(anonymous, "POST", `/v1/pairing/${path}`, { headers, body });
  const user = await tenant.user();
  const guesses = [
    () => world.call(user, "POST", "/v1/pairing/prepare-activation", { headers, body: { pairing_code: newCode(), tenant_id: tenant.tenantId } }),
    () => world.call(user, "GET", `/v1/pairing/${newCode()}/progress`, { headers }),
    () => world.call(anonymous, "GET", `/v1/pairing/status?device_fingerprint=known-one&pairing_code=${newCode()}`, { headers }),
    () => post("activate", { pairing_code: newCode(), activation_token: "guess", user_email: "a@example.com" }),
    () => report(newCode(), "192.0.2.3"),
  ];
  for (let n = 0; n < PER_ADDRESS; n += 1) expect((await guesses[n % guesses.length]?.())?.status).not.toBe(429);
  for (const guess of guesses) expect(outcome(await guess())).toEqual([429, "pairing.guess.ip"]);
});

test("wrong guesses from any number of addresses stay within the total limit", async () => {
  const guessed = await startWorld({ TRUSTED_PROXIES: "127.0.0.0/8", RATE_LIMIT_PAIRING: String(PER_ADDRESS) });
  try {
    const code = await initiate("192.0.2.1", guessed);
    const addresses = Array.from({ length: TOGETHER / PER_ADDRESS + 1 }, (_, n) => `198.51.100.${n + 1}`);
    const seen: Answer[] = [];
    for (const address of addresses) seen.push(...(await Promise.all(Array.from({ length: PER_ADDRESS }, () => report(newCode(), address, guessed)))));
    const looked = seen.filter(({ status }) => status === 404).length;
    expect([looked > TOGETHER / 2, looked <= TOGETHER]).toEqual([true, true]);
    expect(outcome(seen.at(-1) as Answer)).toEqual([429, "pairing.guess.all"]);
    expect(outcome(await report(code, "203.0.113.1", guessed))).toEqual([429, "pairing.guess.all"]);
  } finally {
    await guessed.close();
  }
});
