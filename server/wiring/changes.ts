// Spreads what has changed: to the viewers and waiting calls of this node at once, to those of other nodes by the change notifier.
import type { Hint } from "../core/events.ts";
import type { createCommands } from "../features/commands/index.ts";
import type { Live } from "../features/live/index.ts";
import type { ChangeNotifier } from "../platform/cluster/change-notifier.ts";
import type { createOutbox } from "../platform/outbox/outbox.ts";

/** This node's viewers get the hint itself; other nodes only learn that the tenant has changed. */
export const createHint =
  (live: Pick<Live, "hint" | "isWatched">, changes: Pick<ChangeNotifier, "changed">): Hint =>
  (tenantId, make) => {
    if (live.isWatched(tenantId)) live.hint(make());
    changes.changed(tenantId);
  };

interface Changing {
  readonly outbox: Pick<ReturnType<typeof createOutbox>, "subscribe">;
  readonly live: Pick<Live, "dispatched" | "recheck">;
  readonly commands: Pick<ReturnType<typeof createCommands>, "recheck" | "showRecent">;
  readonly changes: ChangeNotifier;
}

export const spreadChanges = ({ outbox, live, commands, changes }: Changing): void => {
  outbox.subscribe(live.dispatched);
  outbox.subscribe(commands.recheck);
  outbox.subscribe((events) => {
    for (const { tenantId } of events) changes.changed(tenantId);
  });
  changes.listen((tenantIds) => {
    commands.recheck();
    for (const tenantId of tenantIds) if (live.recheck(tenantId)) commands.showRecent(tenantId);
  });
};
