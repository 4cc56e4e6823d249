// Every name that this service uses in Redis. Ids stand as they are; what may be a secret or an address stands as its digest.
import { createHash } from "node:crypto";

const digest = (text: string): string => createHash("sha256").update(text).digest("base64url").slice(0, 32);

export const channelName = (channel: string): string => `svc:gw:${channel}`;
/** Stands as long as Redis has lost nothing. */
export const markKey = (nodeId: string): string => `svc:gw:mark:${nodeId}`;
export const sessionKey = (deviceId: string): string => `svc:sess:${deviceId}`;
export const limitKey = (bucket: string, key: string): string => `svc:rl:${bucket}:${digest(key)}`;
/** By the SHA-256 of the use, which its memory has made already. */
export const signatureKey = (use: Buffer): string => `svc:sig:${use.toString("base64url", 0, 24)}`;
