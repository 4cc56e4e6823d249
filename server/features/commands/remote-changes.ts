// Shows the viewers of this node how other nodes changed a tenant's open commands. A hint from another node names only the tenant, so we read the commands.
import { LRUCache } from "lru-cache";
import { type CommandStatus, contract } from "../../../protocol/index.ts";
import { coalesced } from "../../core/coalesced.ts";
import { type Happened, type Hint, happened } from "../../core/events.ts";
import type { Db } from "../../platform/db.ts";
import { findRecent, type RecentCommand } from "./store/read.ts";

export interface RemoteChanges {
  /** Records a change that this node has already shown. */
  note(event: Happened): void;
  /** Reads and shows the changes now, or after a pause if it has just done so. */
  show(tenantId: string): void;
}

export interface RemoteChangesDeps {
  readonly db: Db;
  /** Shows an event to the viewers of this node only. */
  readonly showHere: Hint;
  readonly onError: (error: unknown) => void;
}

interface Watched {
  /** The database's time of the last read. */
  until: string | null;
  readonly read: () => void;
  readonly shown: LRUCache<string, CommandStatus>;
}

const MAX_TENANTS = 1_000;
const MAX_SHOWN = 2_000;
/** After this long without a hint we start afresh instead of catching up. */
const FORGET_MS = 60_000;
const LIMIT = 200;
/** Pause between two reads of one tenant. */
const PAUSE_MS = 100;

const { queued, changed } = contract.commands.events;

export const createRemoteChanges = ({ db, showHere, onError }: RemoteChangesDeps): RemoteChanges => {
  const tenants = new LRUCache<string, Watched>({ max: MAX_TENANTS, ttl: FORGET_MS });

  const showOne = (state: Watched, { tenantId, commandId, deviceId, type, status }: RecentCommand): void => {
    const previous = state.shown.get(commandId) ?? null;
    if (previous === status) return;
    state.shown.set(commandId, status);
    const event = status === "queued" && previous === null ? queued : changed;
    showHere(happened({ tenantId }, event, commandId, { commandId, deviceId, type, status, previous, failureCode: null }));
  };

  const read = async (tenantId: string, state: Watched): Promise<void> => {
    const { commands, until } = await findRecent(db, tenantId, { since: state.until, limit: LIMIT });
    state.until = until;
    for (const command of commands) showOne(state, command);
  };

  const watched = (tenantId: string): Watched => {
    const known = tenants.get(tenantId) ?? begin(tenantId);
    // Setting the entry renews its time to live.
    tenants.set(tenantId, known);
    return known;
  };
  const begin = (tenantId: string): Watched => {
    const state: Watched = {
      until: null,
      shown: new LRUCache<string, CommandStatus>({ max: MAX_SHOWN }),
      read: coalesced(() => read(tenantId, state), { pauseMs: PAUSE_MS, onError }),
    };
    return state;
  };

  const show = (tenantId: string): void => watched(tenantId).read();

  return {
    show,
    note: ({ scope, subjectId, data }) => {
      const { status } = data as { readonly status?: CommandStatus };
      if (status !== undefined) tenants.get(scope.tenantId)?.shown.set(subjectId, status);
    },
  };
};
