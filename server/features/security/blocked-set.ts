// What is blocked, in the memory of this node: a call costs one look-up, and none while nothing is blocked.
import type { BlockedType } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import { type Address, networkTest, parseAddress } from "../../core/people/addresses.ts";
import { type BlockedCaller, type Blocks, INSTALLATION } from "../../core/ports/security.ts";

export interface BlockRow {
  readonly tenantId: string;
  readonly entityType: string;
  readonly entityValue: string;
  /** Until it ends, by the clock of the database; null: no end. */
  readonly leftMs: number | null;
}

interface Block {
  readonly tenantId: string;
  /** By the monotonic clock of this process. */
  readonly endsAt: number;
}

interface Network {
  readonly has: (address: Address) => boolean;
  readonly blocks: readonly Block[];
}

/** The answers for this many addresses are kept until the next change. */
const MAX_ADDRESSES = 20_000;
const NONE: readonly Block[] = [];

export interface BlockedSet extends Blocks {
  readonly size: number;
  replace(rows: readonly BlockRow[]): void;
}

const ID_OF = { user: "userId", apiKey: "keyId", agent: "deviceId" } as const;
const TYPE_OF = { user: "user", apiKey: "key", agent: "device" } as const satisfies Record<string, BlockedType>;

export const createBlockedSet = (clock: Pick<Clock, "elapsed">): BlockedSet => {
  const listeners = new Set<() => void>();
  let size = 0;
  let byId: Readonly<Record<Exclude<BlockedType, "ip">, Map<string, Block[]>>> = { user: new Map(), key: new Map(), device: new Map() };
  let addresses: ReadonlyMap<string, readonly Block[]> = new Map();
  let networks: readonly Network[] = [];
  const ofAddress = new Map<string, readonly Block[]>();

  const lookUp = (ip: string): readonly Block[] => {
    const address = parseAddress(ip);
    if (address === null) return NONE;
    const inNetworks = networks.flatMap(({ has, blocks }) => (has(address) ? blocks : NONE));
    const alone = addresses.get(address.toString()) ?? NONE;
    return inNetworks.length === 0 ? alone : [...inNetworks, ...alone];
  };
  const blocksOf = (ip: string): readonly Block[] => {
    if (addresses.size === 0 && networks.length === 0) return NONE;
    const known = ofAddress.get(ip);
    if (known !== undefined) return known;
    if (ofAddress.size >= MAX_ADDRESSES) ofAddress.clear();
    const found = lookUp(ip);
    ofAddress.set(ip, found);
    return found;
  };
  const holds = (blocks: readonly Block[], tenantId: string | null): boolean => {
    for (const block of blocks) if ((block.tenantId === INSTALLATION || block.tenantId === tenantId) && clock.elapsed() < block.endsAt) return true;
    return false;
  };

  return {
    get any() {
      return size > 0;
    },
    get size() {
      return size;
    },
    refusesAddress: (ip) => holds(blocksOf(ip), null),
    refuses: ({ tenantId, ip, principal }: BlockedCaller) =>
      holds(byId[TYPE_OF[principal.kind]].get(principal[ID_OF[principal.kind]] ?? "") ?? NONE, tenantId) || holds(blocksOf(ip), tenantId),
    onBlocked: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    replace: (rows) => {
      const now = clock.elapsed();
      const next: Record<BlockedType, Map<string, Block[]>> = { ip: new Map(), user: new Map(), key: new Map(), device: new Map() };
      for (const { tenantId, entityType, entityValue, leftMs } of rows) {
        const values = next[entityType as BlockedType]; // as: a type of a later release blocks nothing here
        const block = { tenantId, endsAt: leftMs === null ? Number.POSITIVE_INFINITY : now + leftMs };
        values?.set(entityValue, [...(values.get(entityValue) ?? NONE), block]);
      }
      byId = next;
      addresses = next.ip;
      networks = [...next.ip].flatMap(([value, blocks]) => (value.includes("/") ? [{ has: networkTest(value), blocks }] : []));
      ofAddress.clear();
      size = rows.length;
      for (const listener of [...listeners]) listener();
    },
  };
};
