// Spreads what has changed: to the viewers, waiting calls and webhooks of this node at once, to those of other nodes by the change notifier.

import type { Commands } from "../features/commands/index.ts";
import type { Domains } from "../features/domains/index.ts";
import type { Live } from "../features/live/index.ts";
import type { MeshRoutes } from "../features/mesh-routes/index.ts";
import type { Tunnels } from "../features/tunnels/index.ts";
import type { Webhooks } from "../features/webhooks/index.ts";
import type { ChangeNotifier } from "../platform/cluster/change-notifier.ts";
import type { Outbox } from "../platform/outbox/outbox.ts";

interface Changing {
  readonly outbox: Pick<Outbox, "subscribe">;
  readonly live: Pick<Live, "dispatched" | "recheck">;
  readonly commands: Pick<Commands, "recheck" | "showRecent">;
  readonly domains: Pick<Domains, "served">;
  readonly meshRoutes: Pick<MeshRoutes, "forget">;
  readonly tunnels: Pick<Tunnels, "forget">;
  readonly webhooks: Pick<Webhooks, "dispatched" | "recheck">;
  readonly changes: ChangeNotifier;
}

export const spreadChanges = ({ outbox, live, commands, webhooks, domains, meshRoutes, tunnels, changes }: Changing): void => {
  outbox.subscribe(webhooks.dispatched);
  outbox.subscribe(live.dispatched);
  outbox.subscribe(commands.recheck);
  outbox.subscribe((events) => {
    for (const { tenantId } of events) changes.changed(tenantId);
  });
  changes.listen(webhooks.recheck);
  changes.listen(domains.served.forget);
  changes.listen(meshRoutes.forget);
  changes.listen(tunnels.forget);
  changes.listen((tenantIds) => {
    commands.recheck();
    for (const tenantId of tenantIds) if (live.recheck(tenantId)) commands.showRecent(tenantId);
  });
};
