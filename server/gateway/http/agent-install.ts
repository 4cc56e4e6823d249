// What a machine needs to become a device, without an account: the script at /install.sh, and the packages of the agent that it fetches.
import { createReadStream } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { AppError } from "../../core/errors.ts";
import type { HttpRequest, HttpResponse, HttpStream } from "./http-message.ts";

const SCRIPT = "/install.sh";
const PACKAGES = "/v1/agent/install/";
const PACKAGE_TYPE = "application/octet-stream";
/** No name leaves the folder. */
const FILE = /^(?:mooring-agent[\w.-]*|SHA256SUMS(?:\.sig)?)$/;
/** More machines than that come again; the script tries three times. */
const MAX_DOWNLOADS = 64;

export interface AgentInstallDeps {
  /** The build's, and what `npm run agent:package` adds to it. */
  readonly folder: string;
  readonly publicUrl: () => string;
  /** Agents that the script installs take releases signed with it; undefined: none. */
  readonly updateKey: string | undefined;
}

const headers = (type: string) => ({ "Content-Type": type, "Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff" });
const missing = (file: string): AppError => new AppError("AGENT_PACKAGE_NOT_FOUND", { details: { file } });
/** Within single quotes of the script. */
const quoted = (text: string): string => text.replaceAll("'", "%27");

export const isAgentInstall = ({ path }: Pick<HttpRequest, "path">): boolean => path === SCRIPT || path.startsWith(PACKAGES);

export const createAgentInstall = ({ folder, publicUrl, updateKey = "" }: AgentInstallDeps) => {
  let downloads = 0;
  const script = async (): Promise<HttpResponse> => {
    const text = await readFile(join(folder, "install.sh"), "utf8").catch(() => Promise.reject(missing("install.sh")));
    const values: Readonly<Record<string, string>> = { URL: quoted(publicUrl().replace(/\/+$/, "")), UPDATE_KEY: updateKey };
    const body = text.replace(/^([A-Z_]+)='@\1@'$/gm, (line, name: string) => (Object.hasOwn(values, name) ? `${name}='${values[name]}'` : line));
    return { status: 200, body, compress: true, headers: headers("text/x-shellscript; charset=utf-8") };
  };
  const download = async (file: string, isHead: boolean): Promise<HttpResponse | HttpStream> => {
    const path = join(folder, file);
    const found = FILE.test(file) ? await stat(path).catch(() => null) : null;
    if (found?.isFile() !== true) throw missing(file.slice(0, 128));
    if (isHead) return { status: 200, headers: headers(PACKAGE_TYPE), body: null, length: found.size };
    if (downloads >= MAX_DOWNLOADS) throw new AppError("SERVICE_UNAVAILABLE", { retryAfter: 5 });
    downloads += 1;
    const content = createReadStream(path);
    content.once("close", () => {
      downloads -= 1;
    });
    return { status: 200, headers: headers(PACKAGE_TYPE), body: Readable.toWeb(content) as ReadableStream<Uint8Array>, whole: true };
  };
  return async ({ method, path }: Pick<HttpRequest, "method" | "path">): Promise<HttpResponse | HttpStream> => {
    if (method !== "GET" && method !== "HEAD") throw new AppError("METHOD_NOT_ALLOWED", { details: { allow: ["GET", "HEAD", "OPTIONS"] } });
    return path === SCRIPT ? script() : download(path.slice(PACKAGES.length), method === "HEAD");
  };
};
