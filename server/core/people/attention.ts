// What a feature finds in a tenant that needs somebody.
import type { AttentionLine, Permission } from "../../../protocol/index.ts";
import type { TenantScope } from "../scope.ts";

export interface Attention extends Omit<AttentionLine, "since"> {
  readonly since: Date | null;
}

export interface AttentionSource {
  /** A caller without it gets no line of the feature. */
  readonly needs: Permission;
  /** Finds at most `limit` lines, of what the caller sees. */
  readonly find: (scope: TenantScope, limit: number) => Promise<readonly Attention[]>;
}

/** As many things as this have a line each; more share one. */
export const MAX_ALONE = 3;
const NAMES = 3;

/** The names that a line shows. */
export const shownNames = (all: readonly { readonly name: string }[]): string[] => all.slice(0, NAMES).map(({ name }) => name);
