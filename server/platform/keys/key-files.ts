// The master key of an installation without MASTER_KEY: two files in DATA_DIR.
import { ConfigError } from "../../core/errors.ts";
import { readFromDataDir, replaceInDataDir } from "../data-dir.ts";

export const KEY_FILE = "master.key";
/** Opens and does not seal, like MASTER_KEY_OTHER. */
export const OTHER_KEY_FILE = "master.key.other";

export const newMasterKey = (): string => Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64");

/** The former key moves to the second file first, so a crash in between loses none. */
export const changeKeyFile = async (dataDir: string): Promise<void> => {
  const current = await readFromDataDir(dataDir, KEY_FILE);
  if (current === undefined) throw new ConfigError(`there is no ${KEY_FILE} in ${dataDir}: start the gateway once`);
  const other = await readFromDataDir(dataDir, OTHER_KEY_FILE);
  if (other !== undefined && other !== current)
    throw new ConfigError(`${OTHER_KEY_FILE} in ${dataDir} still opens secrets: run \`master-key rotate\`, then remove that file`);
  await replaceInDataDir(dataDir, OTHER_KEY_FILE, current);
  await replaceInDataDir(dataDir, KEY_FILE, newMasterKey());
};
