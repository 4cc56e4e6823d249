// Begins the sessions of agents: in one transaction takes presence over and settles the commands that the agents still hold.
// Hellos at the same time share a transaction, because a site that lost its line comes back all at once; if it fails, each hello runs by itself.

import type { SqlTx } from "../../core/events.ts";
import type { AgentSessions, SessionBegun, SessionHello } from "../../core/ports/agent-sessions.ts";
import type { CommandDelivery } from "../../core/ports/delivery.ts";
import type { CreateBatch } from "../../platform/database/batch.ts";
import type { Db } from "../../platform/database/db.ts";
import type { Presence } from "./presence.ts";
import { type DeviceSettings, deviceSettings } from "./settings.ts";

export interface AgentSessionsDeps {
  readonly db: Db;
  readonly presence: Pick<Presence, "open" | "holder" | "reportDuplicate">;
  readonly delivery: Pick<CommandDelivery, "settle">;
  readonly createBatch: CreateBatch;
  readonly settings?: Pick<DeviceSettings, "hellos">;
}

/** Splits the hellos so that each turn has at most one per device, and later ones find the sessions of earlier ones. */
const turnsOf = (hellos: readonly SessionHello[]): readonly (readonly SessionHello[])[] => {
  const turns: SessionHello[][] = [];
  const met = new Map<string, number>();
  for (const hello of hellos) {
    const turn = met.get(hello.device.deviceId) ?? 0;
    met.set(hello.device.deviceId, turn + 1);
    const others = turns[turn];
    if (others === undefined) turns.push([hello]);
    else others.push(hello);
  }
  return turns;
};

export const createAgentSessions = ({ db, presence, delivery, createBatch, settings = deviceSettings() }: AgentSessionsDeps): AgentSessions => {
  const beginTurn = async (tx: SqlTx, hellos: readonly SessionHello[]): Promise<readonly SessionBegun[]> => {
    const opened = await presence.open(tx, hellos);
    const starts = hellos.map(({ device, inFlight, journal, listsAll, cancels, handoffFrom, instanceId }, at) => {
      const { epoch = 0, previousNodeId = null, previousSessionId = null, previousInstanceId = null, pushedOut = 0 } = opened[at] ?? {};
      // Only the process that received the frames of the older session can continue it.
      const handoff = handoffFrom !== null && handoffFrom === previousSessionId && instanceId === previousInstanceId;
      return { ...device, epoch, inFlight, journal, listsAll, cancels, handoff, previousNodeId, pushedOut };
    });
    const settled = await delivery.settle(tx, starts);
    return starts.flatMap(({ epoch, previousNodeId, handoff, pushedOut }, at) => {
      const found = settled[at];
      return found === undefined ? [] : [{ epoch, previousNodeId, handedOver: handoff, pushedOut, ...found }];
    });
  };

  const begin = createBatch(
    (hellos: readonly SessionHello[]) =>
      db.sqlTx(async (tx) => {
        const begun = new Map<SessionHello, SessionBegun>();
        for (const turn of turnsOf(hellos))
          for (const [at, session] of (await beginTurn(tx, turn)).entries()) {
            const hello = turn[at];
            if (hello !== undefined) begun.set(hello, session);
          }
        return hellos.flatMap((hello) => begun.get(hello) ?? []);
      }),
    settings.hellos,
  );

  return { begin, holder: presence.holder, reportDuplicate: presence.reportDuplicate };
};
