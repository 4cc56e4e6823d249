// Reads an app's log, which its shim writes and rotates.
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { pause, type Time } from "../../agent/index.ts";
import { readText } from "./disk.ts";

/** The shim writes it before the lines of each start. */
export const HEADLINE = /^\S+ --- revision \d+ starts ---$/;
export const headlineOf = (revision: number): string => `--- revision ${revision} starts ---`;

const LOOK_MS = 250;
const CHUNK_BYTES = 65_536;

const linesOf = (text: string | null): readonly string[] => (text ?? "").split("\n").slice(0, -1);

export const tailLog = (folder: string, count: number): readonly string[] => {
  const newest = linesOf(readText(join(folder, "log")));
  const lines = newest.length >= count ? newest : [...linesOf(readText(join(folder, "log.1"))), ...newest];
  return count > 0 ? lines.slice(-count) : [];
};

/** The lines since the last start of the app. */
export const linesOfLastStart = (folder: string, count: number): readonly string[] => {
  const lines = tailLog(folder, count);
  return lines.slice(lines.findLastIndex((line) => HEADLINE.test(line)) + 1);
};

interface Place {
  readonly inode: number;
  readonly offset: number;
}

const opened = async (path: string): Promise<FileHandle | null> => open(path, "r").catch(() => null);

/** The end of the log, to follow it from there; null if there is none yet. */
const endOf = async (path: string): Promise<Place | null> => {
  const file = await opened(path);
  if (file === null) return null;
  const { ino, size } = await file.stat();
  await file.close();
  return { inode: ino, offset: size };
};

const readFrom = async (path: string, place: Place | null): Promise<{ readonly text: string; readonly place: Place } | null> => {
  const file = await opened(path);
  if (file === null) return null;
  try {
    const { ino, size } = await file.stat();
    const offset = place?.inode === ino && place.offset <= size ? place.offset : 0;
    const { bytesRead, buffer } = await file.read(Buffer.alloc(Math.min(CHUNK_BYTES, Math.max(0, size - offset))), 0, null, offset);
    // Only whole lines, so that no character and no line is torn.
    const whole = buffer.subarray(0, bytesRead).lastIndexOf(0x0a) + 1;
    return { text: buffer.toString("utf8", 0, whole), place: { inode: ino, offset: offset + whole } };
  } finally {
    await file.close();
  }
};

export interface Followed {
  readonly folder: string;
  readonly time: Time;
  readonly signal: AbortSignal;
  /** The app is removed. */
  readonly isOver: () => boolean;
}

export async function* followLog({ folder, time, signal, isOver }: Followed): AsyncIterable<string> {
  const [log, older] = [join(folder, "log"), join(folder, "log.1")];
  let place = await endOf(log);
  while (!signal.aborted && !isOver()) {
    // After a rotation, what is left of the old file comes first.
    const rotated = place !== null && (await endOf(log))?.inode !== place.inode && (await endOf(older))?.inode === place.inode;
    const next = await readFrom(rotated ? older : log, place);
    if (next !== null && next.text !== "") {
      place = next.place;
      yield* linesOf(next.text);
    } else if (rotated) place = null;
    else await pause(time, LOOK_MS, signal);
  }
}
