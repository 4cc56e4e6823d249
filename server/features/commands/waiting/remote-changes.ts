// Shows the viewers of this node how other nodes changed a tenant's open commands. A hint from another node names only the tenant, so we read the commands.
import type { LRUCache } from "lru-cache";
import { type CommandStatus, contract } from "../../../../protocol/index.ts";
import type { Happened } from "../../../core/events.ts";
import { createBoundedCache } from "../../../core/structures/bounded-cache.ts";
import { coalesced } from "../../../core/structures/coalesced.ts";
import type { Db } from "../../../platform/database/db.ts";
import { findRecent } from "../store/read.ts";
import type { CommandRow } from "../store/rows.ts";
import { commandHappened } from "../transitions.ts";

export interface RemoteChanges {
  /** Records a change that this node has already shown. */
  note(row: CommandRow): void;
  /** Reads and shows the changes now, or after a pause if it has just done so. */
  show(tenantId: string): void;
}

export interface RemoteChangesDeps {
  readonly db: Db;
  /** Shows an event to the viewers of this node only. */
  readonly showHere: (event: Happened) => void;
  readonly onError: (error: unknown) => void;
}

interface Shown {
  readonly status: CommandStatus;
  /** Tells apart what viewers can tell apart. */
  readonly state: string;
  /** How many reads had begun. */
  readonly reads: number;
}

interface Watched {
  /** The database's time of the last read. */
  until: string | null;
  reads: number;
  readonly read: () => void;
  readonly shown: LRUCache<string, Shown>;
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
  const tenants = createBoundedCache<Watched>(MAX_TENANTS, { ttl: FORGET_MS });

  const remember = ({ shown, reads }: Watched, row: CommandRow): void => void shown.set(row.commandId, { status: row.status, state: stateOf(row), reads });

  const showOne = (watched: Watched, row: CommandRow): void => {
    const known = watched.shown.get(row.commandId);
    // This node changed it during the read, so what was read may be older. A change elsewhere after that causes another read.
    if (known?.reads === watched.reads || known?.state === stateOf(row)) return;
    remember(watched, row);
    const previous = known?.status ?? null;
    showHere(commandHappened(row.status === "queued" && previous === null ? queued : changed, row, previous));
  };

  const read = async (tenantId: string, watched: Watched): Promise<void> => {
    watched.reads += 1;
    const { commands, until } = await findRecent(db, tenantId, { since: watched.until, limit: LIMIT });
    watched.until = until;
    for (const row of commands) showOne(watched, row);
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
      reads: 0,
      shown: createBoundedCache<Shown>(MAX_SHOWN),
      read: coalesced(() => read(tenantId, state), { pauseMs: PAUSE_MS, onError }),
    };
    return state;
  };

  const show = (tenantId: string): void => watched(tenantId).read();

  return {
    show,
    note: (row) => {
      const known = tenants.get(row.tenantId);
      if (known !== undefined) remember(known, row);
    },
  };
};

const stateOf = ({ status, attempt, progress }: CommandRow): string => `${status} ${attempt} ${progress?.pct} ${progress?.message}`;
