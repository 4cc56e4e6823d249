// The writes of the process host. Each is durable on return and is seen as a whole or not at all.
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeSync } from "node:fs";
import { dirname } from "node:path";

/** The call that fails on a full disk; tests replace it. */
export interface Disk {
  write(file: number, bytes: Buffer): number;
}
export const systemDisk: Disk = { write: (file, bytes) => writeSync(file, bytes) };

const NEXT = ".next";

export const isUnfinished = (name: string): boolean => name.endsWith(NEXT);

/** A change of a folder's names is durable only once the folder is synced. */
export const syncFolder = (path: string): void => {
  const folder = openSync(path, "r");
  fsyncSync(folder);
  closeSync(folder);
};

const writeWhole = (disk: Disk, path: string, text: string): void => {
  const file = openSync(path, "w", 0o600);
  try {
    let bytes = Buffer.from(text);
    while (bytes.length > 0) bytes = bytes.subarray(disk.write(file, bytes));
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
};

export const replaceFile = (disk: Disk, path: string, text: string): void => {
  const next = `${path}${NEXT}`;
  try {
    writeWhole(disk, next, text);
    renameSync(next, path);
  } catch (error) {
    rmSync(next, { force: true });
    throw error;
  }
  syncFolder(dirname(path));
};

const MISSING: ReadonlySet<unknown> = new Set(["ENOENT", "ENOTDIR"]);

/** Null if there is no such file. */
export const readText = (path: string): string | null => {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && MISSING.has(error.code)) return null;
    throw error;
  }
};
