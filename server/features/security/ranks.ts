// Who may block or free whom. A new kind of entity does not compile before it says here what one of that kind may do.
import type { BlockedType } from "../../../protocol/index.ts";
import type { Tx } from "../../core/database.ts";
import { INSTALLATION } from "../../core/ports/security.ts";
import { requireHeld } from "../../core/ranks.ts";
import { type SystemScope, userIdOf } from "../../core/scope.ts";
import type { ApiKeysFeature } from "../api-keys/index.ts";
import type { Members } from "../tenants/index.ts";

export interface RanksDeps {
  readonly members: Pick<Members, "find">;
  readonly keys: Pick<ApiKeysFeature, "powersOf">;
}

interface Entity {
  readonly entityType: BlockedType;
  readonly entityValue: string;
}
type PowersOf = (tx: Tx, scope: SystemScope, value: string) => Promise<Iterable<string>>;

const NONE: PowersOf = async () => [];
const KEY = /^key_/;

export const createRanks = ({ members, keys }: RanksDeps) => {
  const powers: { readonly [Kind in BlockedType]: PowersOf } = {
    user: async (tx, scope, userId) => (await members.find(tx, scope, { userId }))?.granted ?? [],
    key: keys.powersOf,
    // A device holds no permission: it acts for itself.
    device: NONE,
    // An address is nobody: several share it, and a person changes it. The caller's own is refused elsewhere.
    ip: NONE,
  };
  /** Throws PRIVILEGE_ESCALATION unless the caller may do all that the entity may. Administrators of the installation stand above every tenant. */
  const check = async (tx: Tx, scope: SystemScope, { entityType, entityValue }: Entity): Promise<void> => {
    if (scope.tenantId !== INSTALLATION) requireHeld(scope, await powers[entityType](tx, scope, entityValue));
  };
  return {
    check,
    /** The same for what somebody did, by the actor in its row: nobody undoes what a higher one has done. Jobs and those who have left hold nothing. */
    checkActor: async (tx: Tx, scope: SystemScope, actor: string): Promise<void> => {
      const userId = userIdOf(actor);
      if (userId !== null) await check(tx, scope, { entityType: "user", entityValue: userId });
      else if (KEY.test(actor)) await check(tx, scope, { entityType: "key", entityValue: actor });
    },
  };
};
export type Ranks = ReturnType<typeof createRanks>;
