// Every key and channel name in Redis. Ids appear as they are; possible secrets and addresses appear as digests.
import { createHash } from "node:crypto";

const digest = (text: string): string => createHash("sha256").update(text).digest("base64url").slice(0, 32);

export const channelName = (channel: string): string => `svc:gw:${channel}`;
/** Exists as long as Redis has not lost its data. */
export const markKey = (nodeId: string): string => `svc:gw:mark:${nodeId}`;
export const sessionKey = (deviceId: string): string => `svc:sess:${deviceId}`;
export const limitKey = (bucket: string, key: string): string => `svc:rl:${bucket}:${digest(key)}`;
/** `use` is already a SHA-256. */
export const signatureKey = (use: Buffer): string => `svc:sig:${use.toString("base64url", 0, 24)}`;
