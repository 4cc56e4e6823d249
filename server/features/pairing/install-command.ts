// The line that makes the machine on which it runs a device. The gateway serves its script (gateway/http/agent-install.ts).
const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
/** What no shell changes needs no quotes. */
const word = (text: string): string => (/^[\w:/.@%+-]+$/.test(text) ? text : quote(text));

export const installCommand = (publicUrl: string, token?: string): string =>
  `curl -fsSL ${word(`${publicUrl.replace(/\/+$/, "")}/install.sh`)} | sudo sh${token === undefined ? "" : ` -s -- --token ${word(token)}`}`;
