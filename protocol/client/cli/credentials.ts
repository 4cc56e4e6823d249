// Where the command line keeps the address of the gateway and the key: a file of its user, or the environment of a job.
import { chmod, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { Refusal } from "./refusal.ts";

export interface GatewayKey {
  readonly url: string;
  readonly key: string;
}
type Env = Readonly<Record<string, string | undefined>>;

export const fileOf = (env: Env): string => join(env["XDG_CONFIG_HOME"] || join(env["HOME"] || homedir(), ".config"), "mooring", "credentials.json");

const LOCAL = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/;
/** Throws for what is no address of a gateway, and for one that would carry the key over a network as plain text. */
export const gatewayUrlOf = (text: string): string => {
  if (!URL.canParse(text)) throw new Refusal(`${text} is no URL; give one such as https://mooring.example.org`);
  const { protocol, hostname, origin } = new URL(text);
  if (protocol === "https:" || (protocol === "http:" && LOCAL.test(hostname))) return origin;
  throw new Refusal(`${text} would carry the key as plain text; use https`);
};

const isText = (value: unknown): value is string => typeof value === "string" && value !== "";

const stored = async (file: string): Promise<Partial<GatewayKey>> => {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return {};
    throw new Refusal(`${file} cannot be read: ${(error as Error).message}`);
  }
  try {
    const { url, key } = JSON.parse(text) as Record<string, unknown>;
    return { ...(isText(url) ? { url } : {}), ...(isText(key) ? { key } : {}) };
  } catch {
    throw new Refusal(`${file} is damaged; run mooring login again`);
  }
};

/** The environment comes before the file. */
export const readGatewayKey = async (env: Env): Promise<GatewayKey> => {
  const file: Partial<GatewayKey> = isText(env["MOORING_URL"]) && isText(env["MOORING_KEY"]) ? {} : await stored(fileOf(env));
  const [url, key] = [env["MOORING_URL"] || file.url, env["MOORING_KEY"] || file.key];
  if (url === undefined || key === undefined) throw new Refusal("you are not signed in; run mooring login, or set MOORING_URL and MOORING_KEY");
  return { url: gatewayUrlOf(url), key };
};

/** Nobody but its owner can read it, from its first byte on. */
export const writeGatewayKey = async (env: Env, credentials: GatewayKey): Promise<string> => {
  const file = fileOf(env);
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const fresh = `${file}.${process.pid}`;
  await writeFile(fresh, `${JSON.stringify(credentials, null, 2)}\n`, { mode: 0o600 });
  await chmod(fresh, 0o600);
  await rename(fresh, file);
  return file;
};

export const forgetGatewayKey = (env: Env): Promise<void> => rm(fileOf(env), { force: true });
