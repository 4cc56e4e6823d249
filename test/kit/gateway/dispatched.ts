// Waits until the relay has numbered a tenant's events, because an answer's version may count them.
import { expect } from "vitest";
import { eventually } from "../checks/eventually.ts";
import type { World } from "./world.ts";

const BOUND_MS = 30_000;

export const eventsDispatched = ({ sql }: Pick<World, "sql">, tenantId: string): Promise<void> =>
  eventually(async () => expect((await sql.query("select 1 from outbox_pending where tenant_id = $1", [tenantId])).rows).toEqual([]), BOUND_MS);
