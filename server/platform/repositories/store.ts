// The files of restic repositories in one folder. A file is seen whole or not at all, has the bytes that its name says, and is never overwritten.
import { createHash, randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { type FileHandle, link, mkdir, open, opendir, readFile, rm, stat, unlink } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { FILE_TYPES, type FileType } from "./layout.ts";

export interface StoredFile {
  readonly type: FileType | "config";
  /** A config has the name `config`. */
  readonly name: string;
}

export interface ListedFile {
  readonly name: string;
  readonly size: number;
}

/** `stored`: it is new. `present`: the same bytes were there already. `other`: there is another file of this name. */
export type SaveResult = { readonly outcome: "stored" | "present"; readonly bytes: number } | { readonly outcome: "mismatch" | "other" };

export interface RepositoryStore {
  create(repository: string): Promise<void>;
  /** Null: there is no such file. */
  size(repository: string, file: StoredFile): Promise<number | null>;
  /** The bytes from `start` to `end`, both included. */
  read(repository: string, file: StoredFile, range: { readonly start: number; readonly end: number }): Readable;
  list(repository: string, type: FileType): AsyncIterable<ListedFile>;
  /** Durable on return. An iteration that fails leaves nothing behind. */
  save(repository: string, file: StoredFile, bytes: AsyncIterable<Uint8Array>): Promise<SaveResult>;
  /** Returns the bytes that it frees; null: there was no such file. */
  remove(repository: string, file: StoredFile): Promise<number | null>;
  /** All bytes of a repository. */
  usedBytes(repository: string): Promise<number>;
}

const UNFINISHED = "unfinished";
/** No upload may take this long, so an older one was interrupted. Other nodes may write into the same folder. */
const ABANDONED_AFTER_MS = 7_200_000;
const READ_BYTES = 262_144;
/** A connection brings 64 KiB at a time, and each write wakes another thread. */
const WRITE_BYTES = 262_144;

const codeOf = (error: unknown): unknown => (error instanceof Error && "code" in error ? error.code : null);
const isMissing = (error: unknown): boolean => codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR";
const nullIfMissing = (error: unknown): null => {
  if (isMissing(error)) return null;
  throw error;
};

const syncFolder = async (path: string): Promise<void> => {
  const folder = await open(path, "r");
  await folder.sync().finally(() => folder.close());
};

/** Returns the hash and the length of what it has written durably. */
const writeAll = async (file: FileHandle, bytes: AsyncIterable<Uint8Array>): Promise<{ readonly digest: string; readonly length: number }> => {
  const hash = createHash("sha256");
  let length = 0;
  let pieces: Uint8Array[] = [];
  let gathered = 0;
  const write = async (): Promise<void> => {
    for (let left = Buffer.concat(pieces); left.length > 0; ) left = left.subarray((await file.write(left)).bytesWritten);
    pieces = [];
    gathered = 0;
  };
  for await (const piece of bytes) {
    hash.update(piece);
    pieces.push(piece);
    gathered += piece.length;
    length += piece.length;
    if (gathered >= WRITE_BYTES) await write();
  }
  await write();
  await file.sync();
  return { digest: hash.digest("hex"), length };
};

const sameBytes = async (one: string, other: string): Promise<boolean> => {
  const [first, second] = await Promise.all([readFile(one), readFile(other)]);
  return first.equals(second);
};

const sizeOf = async (path: string): Promise<number | null> => {
  const found = await stat(path).catch(nullIfMissing);
  return found?.isFile() ? found.size : null;
};

async function* namesIn(folder: string): AsyncGenerator<string, void> {
  const entries = await opendir(folder).catch(nullIfMissing);
  for await (const entry of entries ?? []) yield entry.name;
}

export interface RepositoryStoreOptions {
  readonly folder: string;
  readonly nowMs: () => number;
}

export const createRepositoryStore = ({ folder, nowMs }: RepositoryStoreOptions): RepositoryStore => {
  /** Their interrupted uploads have been removed. */
  const tidied = new Set<string>();
  const at = (repository: string, ...names: readonly string[]): string => join(folder, repository, ...names);
  const folderOf = (repository: string, { type, name }: StoredFile): string => {
    if (type === "config") return at(repository);
    // One folder of a million files would be slow.
    return type === "data" ? at(repository, type, name.slice(0, 2)) : at(repository, type);
  };
  const pathOf = (repository: string, file: StoredFile): string => join(folderOf(repository, file), file.name);
  const tidy = async (repository: string): Promise<void> => {
    if (tidied.has(repository)) return;
    tidied.add(repository);
    for await (const name of namesIn(at(repository, UNFINISHED))) {
      const path = at(repository, UNFINISHED, name);
      const found = await stat(path).catch(nullIfMissing);
      if (found !== null && nowMs() - found.mtimeMs > ABANDONED_AFTER_MS) await rm(path, { force: true });
    }
  };
  const create = async (repository: string): Promise<void> => {
    for (const type of FILE_TYPES) await mkdir(at(repository, type), { recursive: true, mode: 0o700 });
    await syncFolder(at(repository));
    await syncFolder(folder);
  };
  /** A link fails if there is a file of this name; a rename would replace it. */
  const publish = async (draft: string, repository: string, file: StoredFile): Promise<"stored" | "present" | "other"> => {
    const path = pathOf(repository, file);
    try {
      await link(draft, path);
    } catch (error) {
      if (codeOf(error) !== "EEXIST") throw error;
      if (file.type === "config") return (await sameBytes(draft, path)) ? "present" : "other";
      // The name says what its bytes should be; a file that lost some of them is not the same.
      const [given, kept] = await Promise.all([stat(draft), stat(path)]);
      return given.size === kept.size ? "present" : "other";
    }
    await syncFolder(folderOf(repository, file));
    return "stored";
  };
  async function* listFolder(path: string): AsyncGenerator<ListedFile, void> {
    for await (const name of namesIn(path)) {
      const size = await sizeOf(join(path, name));
      if (size !== null) yield { name, size };
    }
  }
  async function* list(repository: string, type: FileType): AsyncGenerator<ListedFile, void> {
    const path = at(repository, type);
    if (type !== "data") return yield* listFolder(path);
    for await (const part of namesIn(path)) yield* listFolder(join(path, part));
  }
  return {
    create,
    list,
    size: (repository, file) => sizeOf(pathOf(repository, file)),
    read: (repository, file, range) => createReadStream(pathOf(repository, file), { ...range, highWaterMark: READ_BYTES }),
    save: async (repository, file, bytes) => {
      await tidy(repository);
      await mkdir(at(repository, UNFINISHED), { recursive: true, mode: 0o700 });
      await mkdir(folderOf(repository, file), { recursive: true, mode: 0o700 });
      const draft = at(repository, UNFINISHED, randomUUID());
      const handle = await open(draft, "wx", 0o600);
      try {
        const { digest, length } = await writeAll(handle, bytes).finally(() => handle.close());
        if (file.type !== "config" && digest !== file.name) return { outcome: "mismatch" };
        const outcome = await publish(draft, repository, file);
        return outcome === "other" ? { outcome } : { outcome, bytes: length };
      } finally {
        await rm(draft, { force: true });
      }
    },
    remove: async (repository, file) => {
      const path = pathOf(repository, file);
      const size = await sizeOf(path);
      if (size === null) return null;
      const gone = await unlink(path).then(() => size, nullIfMissing);
      await syncFolder(folderOf(repository, file));
      return gone;
    },
    usedBytes: async (repository) => {
      let bytes = (await sizeOf(at(repository, "config"))) ?? 0;
      for (const type of FILE_TYPES) for await (const { size } of list(repository, type)) bytes += size;
      return bytes;
    },
  };
};
