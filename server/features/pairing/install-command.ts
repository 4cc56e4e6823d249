// The lines that make the machine on which they run a device. The gateway serves their script (gateway/http/agent-install.ts).
import type { InstallCommands } from "../../../protocol/index.ts";

const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
/** What no shell changes needs no quotes. */
const word = (text: string): string => (/^[\w:/.@%+-]+$/.test(text) ? text : quote(text));

export const installCommands = (publicUrl: string, token?: string): InstallCommands => {
  const url = publicUrl.replace(/\/+$/, "");
  const withToken = token === undefined ? [] : ["--token", word(token)];
  const line = (options: readonly string[]): string =>
    `curl -fsSL ${word(`${url}/install.sh`)} | sudo sh${options.length === 0 ? "" : ` -s -- ${options.join(" ")}`}`;
  return {
    linux: line(withToken),
    docker: line([...withToken, "--host", "compose"]),
    ownAgent: [`MOORING_URL=${word(url)}`, ...(token === undefined ? [] : [`MOORING_ENROLLMENT_TOKEN=${word(token)}`])].join("\n"),
  };
};
