// Rotates a device's secret as its agent does, and asks whether the gateway accepts one.
import { callWithRetry, createRotation, type Http, openFileKeys, type PairedDevice, signer, systemTime as time } from "../../../agent-sim/agent/index.ts";
import type { TenantCredentials } from "../../../agent-sim/fleet/portal.ts";
import { signedHeaders } from "../../../protocol/index.ts";
import { headersOf, isSuccess, patience } from "./calls.ts";

const WITHIN_MS = 60_000;

const createStamps = (): (() => number) => {
  let lastMs = 0;
  return () => {
    lastMs = Math.max(lastMs + 1, time.wallMs());
    return lastMs;
  };
};
const stampMs = createStamps();

export const beginRotation = async (http: Http, credentials: TenantCredentials, { deviceId }: Pick<PairedDevice, "deviceId">): Promise<void> => {
  const answer = await callWithRetry(
    () => http.call({ method: "POST", path: `/v1/devices/${deviceId}/secrets/rotate`, headers: headersOf(credentials), body: "{}" }),
    patience(WITHIN_MS),
  );
  // A repeat after a lost answer meets its own rotation in progress.
  if (!isSuccess(answer) && answer.status !== 409) throw new Error(`a rotation could not begin: ${answer.status}`);
};

/** Begins a rotation and carries it out with the keys in the file; returns the secret that it ends with. */
export const rotateSecret = async (http: Http, credentials: TenantCredentials, member: PairedDevice, file: string): Promise<string> => {
  await beginRotation(http, credentials, member);
  const keys = openFileKeys(file, member.secret);
  const rotation = createRotation({ keys, http, deviceId: member.deviceId, identity: member, sign: signer(1), time, random: Math.random, stampMs });
  await rotation.handler.run({}, { commandId: "cmd_1", signal: new AbortController().signal, progress: () => undefined, traceparent: null });
  return keys.secret;
};

/** The status of a call that is signed with the device's secret. */
export const statusWith = async (http: Http, member: PairedDevice): Promise<number> =>
  (await callWithRetry(() => http.call({ method: "GET", path: "/v1/agent/me", headers: signedHeaders(member, "", new Date(stampMs())) }), patience(WITHIN_MS)))
    .status;
