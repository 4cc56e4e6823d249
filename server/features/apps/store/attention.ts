// The apps that need somebody: those in error, those that are not as they should be, and those with a newer version.
import type { Prisma } from "../../../../prisma/generated/client.ts";
import type { Clients } from "../../../core/database.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { type AppRow, toAppRow } from "./app-row.ts";

const existing = { removedAt: null } as const;
/** Nothing is under way there, and they are not among those in error. */
const settled = { status: { in: ["running", "stopped"] } };

/** Each template of the catalogue, and its version there. */
export type TemplateVersions = readonly { readonly id: string; readonly version: string }[];

export const inError = { ...existing, status: "error" } as const;
export const drifted = { ...existing, ...settled, driftSince: { not: null } } as const;
export const outdatedBy = (versions: TemplateVersions): Prisma.AppWhereInput => ({
  ...existing,
  ...settled,
  desiredState: { not: "removed" },
  OR: versions.map(({ id, version }) => ({ appType: id, templateVersion: { not: version } })),
});

export interface FoundApps {
  readonly total: number;
  /** The first few, those that changed last first. */
  readonly first: readonly AppRow[];
}
export const findNeedy = async (db: Clients, scope: SystemScope, where: Prisma.AppWhereInput, take: number): Promise<FoundApps> => {
  const { app } = db.for(scope);
  const first = await app.findMany({ where, orderBy: [{ updatedAt: "desc" }, { appId: "asc" }], take });
  return { first: first.map(toAppRow), total: first.length < take ? first.length : await app.count({ where }) };
};
