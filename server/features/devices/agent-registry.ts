// The agent registry: caches the credentials of agents for seconds, reads them in one statement per turn of the event loop, and drops an agent that changes
// from the caches of all nodes.
import { type AgentId, contract } from "../../../protocol/index.ts";
import { type Emit, happened } from "../../core/events.ts";
import type { AgentRecord, AgentRegistry } from "../../core/ports/agent-registry.ts";
import { chunk, IDS_PER_MESSAGE } from "../../core/rows/chunk.ts";
import { createBoundedCache } from "../../core/structures/bounded-cache.ts";
import { createStringInterner } from "../../core/structures/string-interner.ts";
import type { Bus } from "../../platform/cluster/bus.ts";
import type { Db } from "../../platform/database/db.ts";
import type { Job } from "../../platform/jobs.ts";
import type { SecretBox } from "../../platform/keys/secrets.ts";
import { secretContext } from "./rules.ts";
import type { DeviceSettings } from "./settings.ts";
import { type AgentRow, findAgents, findAgentsOf, lockAgent, promoteSecret } from "./store/agents.ts";

interface AgentRegistryDeps {
  readonly db: Db;
  readonly bus: Bus;
  readonly emit: Emit;
  readonly box: Pick<SecretBox, "open">;
  readonly settings: DeviceSettings;
  /** Called when a message could not be sent; other nodes drop their entries within `registryMs` anyway. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

export interface Agents extends AgentRegistry {
  /** Makes every node forget these agents. May be called inside the changing transaction: see UNSETTLED_MS. */
  announce(agentIds: readonly string[]): void;
  /** Subscribes to what other nodes announce. Returns a function that unsubscribes. */
  listen(): Promise<() => Promise<void>>;
  readonly jobs: readonly Job[];
}

const CHANNEL = "agents";
/** Longer than any transaction of ours: until then a read may return the row from before the change, so it is not cached. */
const UNSETTLED_MS = 10_000;
const BATCH = 1_000;
/** Interned ids of tenants and deployments, which all their agents share. */
const OWNERS = 10_000;

/** The sealed form of the secrets: while it stays the same, they need not be opened again. */
interface Opened {
  readonly sealed: string;
}

interface Asking {
  readonly resolve: (record: AgentRecord | null) => void;
  readonly reject: (error: unknown) => void;
}

export const createAgentRegistry = ({ db, bus, emit, box, settings, onError = () => undefined }: AgentRegistryDeps): Agents => {
  const known = createBoundedCache<{ readonly record: AgentRecord | null }>(settings.registrySize, { ttl: settings.registryMs });
  const unsettled = createBoundedCache<true>(settings.registrySize, { ttl: UNSETTLED_MS });
  const remembered = createBoundedCache<AgentRecord & Partial<Opened>>(settings.registrySize, { ttl: settings.rememberedMs });
  const same = createStringInterner(OWNERS);
  const pending = new Map<string, Promise<AgentRecord | null>>();
  let asking = new Map<string, Asking>();

  const toRecord = (row: AgentRow, agentId: string): AgentRecord & Opened => {
    const context = secretContext(row.tenant_id, row.device_id);
    const both = row.removed ? [] : row.pending_secret === null ? [row.secret] : [row.secret, row.pending_secret];
    const sealed = both.map((secret) => Buffer.from(secret.buffer, secret.byteOffset, secret.byteLength).toString("latin1")).join();
    const before = remembered.get(agentId);
    return {
      agentId: agentId as AgentId, // as: it is the row's id; the record and its cache key share one string
      deviceId: row.device_id,
      tenantId: same(row.tenant_id),
      deploymentId: same(row.deployment_id),
      secrets: before?.sealed === sealed ? before.secrets : both.map((secret) => box.open(secret, context)),
      sealed,
      minSignatureVersion: row.min_sig_version === 2 ? 2 : 1,
      revoked: row.removed,
      tenantStatus: same(row.tenant_status),
    };
  };

  const answer = async (questions: ReadonlyMap<string, Asking>): Promise<void> => {
    try {
      const rows = new Map((await findAgents(db, [...questions.keys()])).map((row) => [row.agent_id as string, row]));
      for (const [agentId, { resolve, reject }] of questions) {
        const row = rows.get(agentId);
        // A secret that does not decrypt fails its own agent only.
        try {
          resolve(row === undefined ? null : toRecord(row, agentId));
        } catch (error) {
          reject(error);
        }
      }
    } catch (error) {
      for (const { reject } of questions.values()) reject(error);
    }
  };

  const ask = (agentId: string): Promise<AgentRecord | null> =>
    new Promise((resolve, reject) => {
      if (asking.size === 0) setImmediate(flush);
      asking.set(agentId, { resolve, reject });
      if (asking.size >= BATCH) flush();
    });
  const flush = (): void => {
    const questions = asking;
    asking = new Map();
    if (questions.size > 0) void answer(questions);
  };

  const load = (agentId: string): Promise<AgentRecord | null> => {
    const waiting = pending.get(agentId);
    if (waiting !== undefined) return waiting;
    const asked = ask(agentId)
      .then((record) => {
        if (!unsettled.has(agentId) && pending.get(agentId) === asked)
          known.set(agentId, { record }, { ttl: record === null ? settings.registryMissMs : settings.registryMs });
        return record;
      })
      .finally(() => {
        if (pending.get(agentId) === asked) pending.delete(agentId);
      });
    pending.set(agentId, asked);
    return asked;
  };

  const forget = (agentIds: readonly string[]): void => {
    for (const agentId of agentIds) {
      unsettled.set(agentId, true);
      known.delete(agentId);
      remembered.delete(agentId);
      // A read under way may return the old row; later calls read again.
      pending.delete(agentId);
    }
  };

  const announce = (agentIds: readonly string[]): void => {
    forget(agentIds);
    for (const some of chunk(agentIds, IDS_PER_MESSAGE)) void bus.publish(CHANNEL, { op: "forget", agentIds: some.join(",") }).catch(onError);
  };

  const remember = (record: AgentRecord): void => {
    if (!unsettled.has(record.agentId)) remembered.set(record.agentId, record);
  };

  const expectBack = (record: AgentRecord): void => {
    if (unsettled.has(record.agentId)) return;
    remembered.set(record.agentId, record);
    known.set(record.agentId, { record });
  };

  const find = async (agentId: string): Promise<AgentRecord | null> => {
    const hit = known.get(agentId);
    return hit === undefined ? load(agentId) : hit.record;
  };

  return {
    find,
    take: async (agentId) => {
      const record = await find(agentId);
      known.delete(agentId);
      remembered.delete(agentId);
      return record;
    },
    remember,
    recall: (agentId) => remembered.get(agentId) ?? null,
    expect: async (deviceIds) => {
      for (const some of chunk(deviceIds, BATCH)) for (const row of await findAgentsOf(db, some)) expectBack(toRecord(row, row.agent_id));
    },
    promote: async (agentId, usedSecret) => {
      const promoted = await db.sqlTx(async (tx) => {
        const row = await lockAgent(tx, agentId);
        if (row === undefined || row.pending_secret === null || box.open(row.pending_secret, secretContext(row.tenant_id, row.device_id)) !== usedSecret)
          return false;
        await promoteSecret(tx, agentId);
        await emit(tx, [happened({ tenantId: row.tenant_id }, contract.devices.events.secretsRotated, row.device_id, { deviceId: row.device_id })]);
        return true;
      });
      if (promoted) announce([agentId]);
    },
    forget,
    announce,
    listen: () =>
      bus.subscribe(CHANNEL, ({ agentIds }) => {
        if (typeof agentIds === "string") forget(agentIds.split(","));
      }),
    jobs: [
      {
        // Otherwise expired entries, with their secrets, would stay in memory until new ones replace them.
        name: "agents.purge",
        everyMs: 2 * settings.registryMs,
        run: async () => {
          known.purgeStale();
          remembered.purgeStale();
          unsettled.purgeStale();
        },
      },
    ],
  };
};
