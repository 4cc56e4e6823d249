// Anything that a stranger can send to the repositories: no answer is a 500, and nothing is written outside of a repository.
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { FILE_TYPES, readAddress } from "../../../server/platform/repositories/layout.ts";
import { folderPrefix } from "../../kit/setup/run-mark.ts";
import { type Served, serveRepositories } from "./served.ts";

let served: Served;
let beside: string;
beforeAll(async () => {
  beside = await mkdtemp(join(tmpdir(), folderPrefix("beside")));
  served = await serveRepositories({ idleMs: 200 });
  served.grants.set("t", { right: "prune", space: 10_000 });
});
afterAll(async () => {
  await served.close();
  await rm(beside, { recursive: true, force: true });
});

const name = "a".repeat(64);
const segment = fc.oneof(
  fc.constantFrom("..", ".", "", "config", ...FILE_TYPES, name, name.toUpperCase(), `${name}0`, "%2e%2e", "%00", "a\\b", "unfinished", "dev_1"),
  fc.string({ maxLength: 20 }),
);
const path = fc.array(segment, { maxLength: 6 }).map((parts) => parts.join("/"));

/** Sends a text as it is and returns the status of each answer. */
const send = (text: string): Promise<number[]> =>
  new Promise((resolve) => {
    const { port } = new URL(served.url);
    const socket = connect(Number(port), "127.0.0.1");
    let said = "";
    socket.setEncoding("latin1");
    socket.on("data", (more: string) => {
      said += more;
    });
    socket.on("error", () => undefined);
    socket.on("close", () => resolve([...said.matchAll(/^HTTP\/1\.1 (\d{3})/gm)].map(([, status]) => Number(status))));
    socket.end(text, "latin1");
  });

test("a path names a repository and one of its files, or nothing", () => {
  fc.assert(
    fc.property(path, (given) => {
      const address = readAddress(`/restic/${given}`, "/restic/");
      if (address === null) return;
      expect(address.repository).toMatch(/^[A-Za-z0-9][\w-]{0,127}$/);
      if (address.kind === "file") expect([FILE_TYPES.includes(address.type), /^[0-9a-f]{64}$/.test(address.name)]).toEqual([true, true]);
    }),
  );
});

test("no request is answered with 500, and none writes outside of the repositories", async () => {
  const authorization = `Basic ${Buffer.from("x:t").toString("base64")}`;
  const header = fc.constantFrom(
    "range: bytes=0-",
    "range: bytes=99999999999999999999-1",
    "range: bytes=-0",
    "content-length: 5",
    "content-length: 99999999999",
    "transfer-encoding: chunked",
    "accept: application/vnd.x.restic.rest.v2",
    "authorization: Basic !!",
    "expect: 100-continue",
  );
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom("GET", "HEAD", "POST", "DELETE", "PUT", "OPTIONS"),
      path.map((given) => given.replaceAll(/[^!-~]/g, "_")),
      fc.uniqueArray(header, { maxLength: 3 }),
      fc.string({ maxLength: 30 }),
      async (method, given, headers, body) => {
        const head = [`${method} /restic/${given}?create=true HTTP/1.1`, "host: x", `authorization: ${authorization}`, ...headers, "", ""];
        for (const status of await send(head.join("\r\n") + body)) expect(status).not.toBe(500);
      },
    ),
  );
  expect(served.errors).toEqual([]);
  expect(await readdir(beside)).toEqual([]);
  for (const found of await readdir(served.folder)) expect(found).toMatch(/^[A-Za-z0-9][\w-]{0,127}$/);
});
