// Signs the chains of the audit log again after a change of the master key.
import type { Db } from "../../platform/database/db.ts";
import type { ChainSigner } from "./chain.ts";
import { lockChain, loggedTenants, signChain } from "./store.ts";

/** Returns how many chains are signed with the key that signs now. A chain that somebody has moved keeps its wrong signature. */
export const resignChains = async (db: Db, signer: ChainSigner): Promise<number> => {
  let signed = 0;
  for (const tenantId of await loggedTenants(db)) {
    const isSigned = await db.sqlTx(async (tx) => {
      const chain = await lockChain(tx, tenantId);
      if (!signer.isSigned(chain)) return false;
      await signChain(tx, tenantId, signer.sign(chain));
      return true;
    });
    if (isSigned) signed += 1;
  }
  return signed;
};
