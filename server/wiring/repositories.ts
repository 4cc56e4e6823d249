// The restic repositories that this installation keeps for its devices: a folder, served on the edge.
import type { EdgePart } from "../core/ports/edge.ts";
import type { RepositoryGate } from "../core/ports/repository-access.ts";
import { createRepositoryHandler, REPOSITORIES } from "../platform/repositories/repository-handler.ts";
import { createRepositoryStore } from "../platform/repositories/store.ts";
import type { Wiring } from "./deps.ts";
import { backupFolder } from "./settings.ts";

/** Null: this installation keeps none. */
export const repositoriesUrl = ({ config, edgeUrl }: Pick<Wiring, "config" | "edgeUrl">): string | null =>
  backupFolder(config) === null ? null : (edgeUrl?.() ?? null);

export const serveRepositories = ({ config, clock, failed }: Pick<Wiring, "config" | "clock" | "failed">, gate: RepositoryGate): EdgePart => {
  const folder = backupFolder(config);
  if (folder === null) return {};
  const store = createRepositoryStore({ folder, nowMs: () => clock.now().getTime() });
  const serve = createRepositoryHandler({ store, gate, onError: failed("serve a backup repository") });
  return { mounts: [{ prefix: REPOSITORIES, handler: { handle: serve }, everywhere: true }] };
};
