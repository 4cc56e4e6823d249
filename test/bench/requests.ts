// Prepared HTTP requests for the load generator, each with the text that its answer must contain.
import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { BenchStage } from "./stage.ts";

export interface PreparedRequest {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** A text on one line. */
  readonly expected: string;
}

const toText = ({ method, path, headers = {}, body }: PreparedRequest): string => {
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

export const writeRequests = (stage: Pick<BenchStage, "folder">, requests: readonly PreparedRequest[]): string => {
  const file = join(stage.folder, `requests-${randomUUID().slice(0, 8)}`);
  writeFileSync(file, requests.map((request) => `${Buffer.byteLength(toText(request))} ${request.expected}\n${toText(request)}`).join(""), { mode: 0o600 });
  return file;
};
