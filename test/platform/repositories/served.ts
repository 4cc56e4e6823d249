// A repository handler behind a listener of its own, and restic as its client.
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RepositoryRight } from "../../../protocol/index.ts";
import { runProgram } from "../../../protocol/kit/programs/run-program.ts";
import { systemTimers } from "../../../protocol/kit/timers.ts";
import { permitsAction, type RepositoryClaim, type RepositoryGate } from "../../../server/core/ports/repository-access.ts";
import { createRepositoryHandler, type RepositoryHandlerOptions } from "../../../server/platform/repositories/repository-handler.ts";
import { createRepositoryStore, type RepositoryStore } from "../../../server/platform/repositories/store.ts";
import { folderPrefix } from "../../kit/setup/run-mark.ts";

export interface Grant {
  readonly right: RepositoryRight;
  readonly space: number | null;
  /** Default: true. */
  readonly mayInitialize?: boolean;
}

/** Judges by the rules of the gateway, with tokens from a table. */
const gateOver = (grants: ReadonlyMap<string, Grant>, changes: number[]): RepositoryGate => ({
  judge: async ({ repositoryId, token, action, kind }) => {
    const grant = token === null ? undefined : grants.get(token);
    if (grant === undefined) return { allowed: false, status: 401, reason: "unknown" };
    const { right, mayInitialize = true } = grant;
    if (!permitsAction({ right, mayInitialize }, action, kind)) return { allowed: false, status: 403, reason: "the right does not cover this" };
    const claim: RepositoryClaim = { tenantId: "ten_1", deviceId: "dev_1", repositoryId, right, mayInitialize, commandId: null, expiresAt: new Date(8e15) };
    return { allowed: true, claim, space: grant.space };
  },
  changed: async (_, bytes) => void changes.push(bytes),
  measured: async () => undefined,
});

export interface Served {
  readonly url: string;
  readonly folder: string;
  readonly store: RepositoryStore;
  readonly errors: unknown[];
  /** By token. */
  readonly grants: Map<string, Grant>;
  /** What has been stored and freed. */
  readonly changes: number[];
  call(
    token: string | null,
    method: string,
    path: string,
    init?: { readonly body?: string | Buffer; readonly headers?: Record<string, string> },
  ): Promise<Response>;
  close(): Promise<void>;
}

export const serveRepositories = async (bounds: RepositoryHandlerOptions["bounds"] = {}): Promise<Served> => {
  const folder = await mkdtemp(join(tmpdir(), folderPrefix("repositories")));
  const errors: unknown[] = [];
  const changes: number[] = [];
  const grants = new Map<string, Grant>();
  const store = createRepositoryStore({ folder, nowMs: () => Date.now() });
  const handle = createRepositoryHandler({ store, gate: gateOver(grants, changes), bounds: bounds ?? {}, onError: (error) => void errors.push(error) });
  const server = createServer((message, response) => {
    const path = (message.url ?? "").replace(/[?#].*$/s, "");
    void handle({ message, path }, response).then((taken) => taken || response.writeHead(404).end());
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    folder,
    store,
    errors,
    grants,
    changes,
    call: (token, method, path, { body, headers = {} } = {}) => {
      const authorization = token === null ? {} : { authorization: `Basic ${Buffer.from(`device:${token}`).toString("base64")}` };
      return fetch(`${url}/restic/${path}`, { method, headers: { ...authorization, ...headers }, ...(body === undefined ? {} : { body }) });
    },
    close: async () => {
      server.closeAllConnections();
      server.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
};

/** Runs restic against an address, with a password and a cache of its own. */
export const runRestic = async (repository: string, words: readonly string[], cwd = tmpdir()) => {
  const env = { PATH: process.env["PATH"], HOME: cwd, RESTIC_REPOSITORY: repository, RESTIC_PASSWORD: "correct horse", RESTIC_CACHE_DIR: join(cwd, ".cache") };
  return runProgram({ command: "restic", words, cwd, env, time: systemTimers, withinMs: 60_000 });
};
