// Files that an installation generates once into DATA_DIR, such as keys; only their owner can read them.
import { link, mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";

/** Returns the file's text. The first caller creates it; all others read it, processes that start at the same moment included. */
export const keepInDataDir = async (dataDir: string, name: string, make: () => Promise<string> | string): Promise<string> => {
  const path = join(dataDir, name);
  const existing = await readFile(path, "utf8").catch(absent);
  if (existing !== null) return existing.trim();
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const draft = `${path}.${process.pid}`;
  const file = await open(draft, "w", 0o600);
  try {
    await file.writeFile(`${await make()}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  // The link fails when another process was quicker; its file counts then.
  await link(draft, path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") return rename(draft, path);
  });
  await rm(draft, { force: true });
  return (await readFile(path, "utf8")).trim();
};

/** Undefined where nobody has put the file. */
export const readFromDataDir = async (dataDir: string, name: string): Promise<string | undefined> =>
  (await readFile(join(dataDir, name), "utf8").catch(absent))?.trim();

/** Replaces the file whole: a reader sees the former text or the new one, also after a crash. */
export const replaceInDataDir = async (dataDir: string, name: string, text: string): Promise<void> => {
  const draft = join(dataDir, `${name}.${process.pid}`);
  const file = await open(draft, "w", 0o600);
  try {
    await file.writeFile(`${text}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(draft, join(dataDir, name));
};

const absent = (error: NodeJS.ErrnoException): null => {
  if (error.code === "ENOENT") return null;
  throw error;
};
