// Disables a webhook: by a person, because its receiver is gone, or because nothing has reached it for five days.
import { contract, type DISABLED_REASONS, type TenantId } from "../../../../protocol/index.ts";
import type { Clock } from "../../../core/clock.ts";
import type { Tx } from "../../../core/database.ts";
import { type Emit, happened } from "../../../core/events.ts";
import { updateWebhook } from "../store/endpoints.ts";
import { markDue } from "../store/fan-out.ts";

export interface DisableDeps {
  readonly emit: Emit;
  readonly clock: Clock;
}

/** The event also mails the owners and administrators, see account/notices.ts. The worker cancels what still waits. */
export const createDisable =
  ({ emit, clock }: DisableDeps) =>
  async (
    tx: Tx,
    { tenantId, webhookId }: { readonly tenantId: TenantId; readonly webhookId: string },
    reason: (typeof DISABLED_REASONS)[number],
  ): Promise<void> => {
    const scope = { tenantId };
    const change = { status: "disabled", disabledReason: reason, disabledAt: clock.now() } as const;
    const row = await updateWebhook(tx, scope, { webhookId, status: "active" }, change);
    if (row === null) return;
    await markDue(tx, [webhookId]);
    await emit(tx, [happened(scope, contract.webhooks.events.disabled, webhookId, { webhookId: row.webhookId as `wh_${string}`, url: row.url, reason })]);
  };
export type Disable = ReturnType<typeof createDisable>;
