// The identity of this device in its file, which nobody but the agent may read or replace.
import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { type IssuedIdentity, StoredIdentity } from "../agent/index.ts";
import { replaceFile, systemDisk } from "../host/processes/disk.ts";
import { BadOptions } from "../options.ts";

export type DeviceIdentity = z.infer<typeof IssuedIdentity>;

export const identityPath = (data: string): string => join(data, "identity.json");

const hasCode = (error: unknown, ...codes: readonly string[]): boolean => error instanceof Error && "code" in error && codes.includes(String(error.code));

/** Null: the machine is not paired. Refuses a file that others may read or that belongs to somebody else. */
export const readIdentity = (path: string, uid: number | null): DeviceIdentity | null => {
  try {
    const { mode, uid: owner } = statSync(path);
    if (uid !== null && uid !== 0 && owner !== uid) throw new BadOptions(`${path} belongs to another user (${owner}); run this as that user, or chown it`);
    if ((mode & 0o077) !== 0) throw new BadOptions(`${path} holds the device's secret and others may read it; run: chmod 600 ${path}`);
    return StoredIdentity.parse(JSON.parse(readFileSync(path, "utf8")));
  } catch (error) {
    if (hasCode(error, "ENOENT", "ENOTDIR")) return null;
    if (error instanceof SyntaxError || error instanceof z.ZodError)
      throw new BadOptions(`${path} is no identity of a device; restore it from a backup, or remove it and pair the machine again`);
    if (hasCode(error, "EACCES", "EPERM")) throw new BadOptions(`${path} cannot be read by this user; try sudo`);
    throw error;
  }
};

const writeDurably = (path: string, text: string): void => {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  replaceFile(systemDisk, path, text);
};
export const writeIdentity = (path: string, identity: DeviceIdentity): void => writeDurably(path, `${JSON.stringify(identity)}\n`);

const readOr = (path: string): string => {
  try {
    return readFileSync(path, "utf8").trim();
  } catch (error) {
    if (hasCode(error, "ENOENT", "EACCES", "ENOTDIR")) return "";
    throw error;
  }
};

/** The same after a reinstallation on this machine, and another one for a second agent with other data. A machine without an id gets one here. */
export const machineFingerprint = (data: string): string => {
  const given = readOr("/etc/machine-id");
  const stored = join(data, "machine-id");
  const own = given === "" ? readOr(stored) || randomBytes(16).toString("hex") : given;
  if (given === "") writeDurably(stored, `${own}\n`);
  return `sha256:${createHash("sha256").update(`${own}\n${data}`).digest("hex")}`;
};
