// What an installation keeps for itself beside the embedded database: made once, readable by its owner only.
import { link, mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";

/** The file's text; the first caller makes it, others (also other processes at the same moment) read what was made. */
export const keep = async (dataDir: string, name: string, make: () => Promise<string> | string): Promise<string> => {
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
  // A link fails when somebody was quicker: theirs counts then.
  await link(draft, path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") return rename(draft, path);
  });
  await rm(draft, { force: true });
  return (await readFile(path, "utf8")).trim();
};

const absent = (error: NodeJS.ErrnoException): null => {
  if (error.code === "ENOENT") return null;
  throw error;
};
