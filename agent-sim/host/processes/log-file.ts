// Reads an app's log, which its shim writes and rotates.
import { closeSync, fstatSync, openSync, readSync, statSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { pause, type Time } from "../../agent/index.ts";

/** The shim writes it before the lines of each start. */
export const HEADLINE = /^\S+ --- revision \d+ starts ---$/;
export const headlineOf = (revision: number): string => `--- revision ${revision} starts ---`;

const LOOK_MS = 250;
const CHUNK_BYTES = 65_536;

/** The most of a log's end that is read, however few lines that are. */
const MAX_TAIL_BYTES = 2_097_152;

const linesOf = (text: string): readonly string[] => text.split("\n").slice(0, -1);

/** The last whole lines of a file, read from its end. */
const tailFile = (path: string, count: number): readonly string[] => {
  let file: number;
  try {
    file = openSync(path, "r");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  }
  try {
    const blocks: Buffer[] = [];
    const { size } = fstatSync(file);
    let [offset, breaks] = [size, 0];
    // One more: it ends the line before the first.
    while (offset > 0 && breaks <= count && size - offset < MAX_TAIL_BYTES) {
      const block = Buffer.alloc(Math.min(CHUNK_BYTES, offset));
      offset -= block.length;
      readSync(file, block, 0, block.length, offset);
      for (let at = block.indexOf(0x0a); at >= 0; at = block.indexOf(0x0a, at + 1)) breaks += 1;
      blocks.unshift(block);
    }
    const lines = linesOf(Buffer.concat(blocks).toString("utf8"));
    // Its beginning is further ahead.
    return (offset > 0 ? lines.slice(1) : lines).slice(-count);
  } finally {
    closeSync(file);
  }
};

export const tailLog = (folder: string, count: number): readonly string[] => {
  if (count < 1) return [];
  const newest = tailFile(join(folder, "log"), count);
  const missing = count - newest.length;
  return missing > 0 ? [...tailFile(join(folder, "log.1"), missing), ...newest] : newest;
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

/** The end of a log; null if there is none. */
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
    // Only whole lines, so that no character and no line is torn; but of a line without end, what there is.
    const end = buffer.subarray(0, bytesRead).lastIndexOf(0x0a) + 1;
    if (end === 0 && bytesRead === CHUNK_BYTES) return { text: `${buffer.toString("utf8")}\n`, place: { inode: ino, offset: offset + bytesRead } };
    return { text: buffer.toString("utf8", 0, end), place: { inode: ino, offset: offset + end } };
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

/** What comes from this call on, even if it is read later. */
export const followLog = (followed: Followed): AsyncIterable<string> => {
  const { ino, size } = statSync(join(followed.folder, "log"), { throwIfNoEntry: false }) ?? {};
  return followFrom(followed, ino === undefined || size === undefined ? null : { inode: ino, offset: size });
};

async function* followFrom({ folder, time, signal, isOver }: Followed, from: Place | null): AsyncIterable<string> {
  const [log, older] = [join(folder, "log"), join(folder, "log.1")];
  let place = from;
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
