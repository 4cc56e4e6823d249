// The port between whoever serves restic repositories of this installation and the feature that says who may do what with them. A credential is bound to a
// tenant, a device, one repository, a right and mostly a command, and it expires.
import type { DeviceId, RepositoryRight, TenantId } from "../../../protocol/index.ts";

/** The kinds of objects in a restic repository, as its REST protocol names them. */
export const OBJECT_KINDS = ["config", "keys", "locks", "snapshots", "index", "data"] as const;
export type ObjectKind = (typeof OBJECT_KINDS)[number];

/** `add`: makes an object that is not there; nothing is ever overwritten. `create`: makes the repository's folder. */
export type RepositoryAction = "read" | "create" | "add" | "delete";

const DELETES: Readonly<Record<RepositoryRight, ReadonlySet<ObjectKind>>> = {
  read: new Set(["locks"]),
  append: new Set(["locks"]),
  forget: new Set(["locks", "snapshots"]),
  prune: new Set(["locks", "snapshots", "index", "data"]),
};

/** Whether the claim covers the action. Everybody reads and locks; nobody deletes keys or the repository's configuration, or makes a lost one anew. */
export const permitsAction = (
  { right, mayInitialize }: Pick<RepositoryClaim, "right" | "mayInitialize">,
  action: RepositoryAction,
  kind: ObjectKind,
): boolean => {
  if (action === "read") return true;
  if (action === "delete") return DELETES[right].has(kind);
  if ((action === "create" || kind === "config") && !mayInitialize) return false;
  return right !== "read" || (action === "add" && kind === "locks");
};

export interface RepositoryClaim {
  readonly tenantId: TenantId;
  readonly deviceId: DeviceId;
  readonly repositoryId: string;
  readonly right: RepositoryRight;
  /** Whether the repository may be made, because none was there before. */
  readonly mayInitialize: boolean;
  /** Null: no command, but a person with the recovery sheet. */
  readonly commandId: string | null;
  readonly expiresAt: Date;
}

export interface RepositoryRequest {
  /** The name of the repository in the path. */
  readonly repositoryId: string;
  /** The password of HTTP's basic authentication; the user name says nothing. Null: there is none. */
  readonly token: string | null;
  readonly action: RepositoryAction;
  readonly kind: ObjectKind;
  /** The size of what is to be added; 0 for an unknown length. */
  readonly bytes: number;
}

/** 401: ask for credentials. 403: the credential does not cover this. 507: the tenant's plan has no space for so much. */
export type RepositoryVerdict =
  | { readonly allowed: true; readonly claim: RepositoryClaim /** The bytes that the tenant may still add. Null: no limit. */; readonly space: number | null }
  | { readonly allowed: false; readonly status: 401 | 403 | 507; readonly reason: string };

export interface RepositoryGate {
  judge(request: RepositoryRequest): Promise<RepositoryVerdict>;
  /** Call it when an object is stored or deleted: the repository has so many bytes more, or fewer. */
  changed(claim: Pick<RepositoryClaim, "tenantId" | "repositoryId">, bytes: number): Promise<void>;
  /** Call it with what a repository really holds, such as after a prune: replaces what was counted. */
  measured(claim: Pick<RepositoryClaim, "tenantId" | "repositoryId">, bytes: number): Promise<void>;
}
