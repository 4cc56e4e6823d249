// Prepared HTTP requests for the load generator, each with the words that its answer must contain.
import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Stage } from "./stage.ts";

export interface Prepared {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** On one line. */
  readonly expected: string;
}

const toText = ({ method, path, headers = {}, body }: Prepared): string => {
  const text = body === undefined ? "" : JSON.stringify(body);
  const all = {
    Host: "127.0.0.1",
    ...headers,
    ...(body === undefined ? {} : { "Content-Type": "application/json", "Content-Length": String(Buffer.byteLength(text)) }),
  };
  return `${method} ${path} HTTP/1.1\r\n${Object.entries(all)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join("")}\r\n${text}`;
};

export const writeRequests = (stage: Pick<Stage, "folder">, requests: readonly Prepared[]): string => {
  const file = join(stage.folder, `requests-${randomUUID().slice(0, 8)}`);
  writeFileSync(file, requests.map((request) => `${Buffer.byteLength(toText(request))} ${request.expected}\n${toText(request)}`).join(""), { mode: 0o600 });
  return file;
};
