// The REST side of an agent: poll for due commands and acknowledge them, through the same queue as the socket.
import { ACK_STATUSES, type CommandId, type contract } from "../../../../protocol/index.ts";
import { AppError } from "../../../core/errors.ts";
import type { Handlers } from "../../../core/feature.ts";
import type { PollPresence } from "../../../core/ports/agent-sessions.ts";
import type { CommandDelivery, DeviceRef } from "../../../core/ports/delivery.ts";
import type { Db } from "../../../platform/database/db.ts";
import type { CommandTelemetry } from "../command-telemetry.ts";
import { toDelivered } from "../records.ts";
import type { AfterCommit } from "../sending/after-commit.ts";
import { STATUS_UNKNOWN } from "../sending/delivery.ts";
import { sentNow } from "../sending/sending.ts";
import type { CommandSettings } from "../settings.ts";
import { claimForPoll, type PolledRow } from "../store/claim.ts";
import { lockOfDevice } from "../store/lock.ts";
import { findPending } from "../store/read.ts";
import type { CommandRow } from "../store/rows.ts";
import type { Transitions } from "../transitions.ts";
import type { Waiters } from "../waiting/waiters.ts";

/** After so many missed intervals another process may take over the poller's identity. */
const POLLS_MISSED = 2;

export interface AgentOperationsDeps {
  readonly db: Db;
  readonly presence: PollPresence;
  readonly transitions: Transitions;
  readonly delivery: CommandDelivery;
  readonly afterCommit: Pick<AfterCommit, "changed">;
  readonly waiters: Waiters;
  readonly telemetry: Pick<CommandTelemetry, "polledAgain">;
  readonly nodeId: string;
  readonly settings: CommandSettings;
}

export const createAgentOperations = ({
  db,
  presence,
  transitions,
  afterCommit,
  delivery,
  waiters,
  telemetry,
  nodeId,
  settings,
}: AgentOperationsDeps): Pick<Handlers<typeof contract.commands>, "poll" | "ack"> => {
  // T5: no ack will come for these, and the answer that carries them is on its way.
  const finishUnacknowledged = async (rows: readonly CommandRow[], device: DeviceRef): Promise<void> => {
    if (rows.length === 0) return;
    const made = await db.sqlTx(async (tx) => {
      const locked = await lockOfDevice(
        tx,
        device,
        rows.map(({ commandId }) => commandId),
      );
      return (
        await transitions.apply(
          tx,
          locked,
          () => [{ kind: "written", epoch: null }],
          () => "poll",
        )
      ).transitions;
    });
    afterCommit.changed(made);
  };

  const claim = (device: DeviceRef, limit: number): Promise<readonly PolledRow[]> =>
    claimForPoll(db, device, limit, { nodeId, timings: settings, graceMs: settings.sentGraceMs });

  interface Found {
    readonly rows: readonly PolledRow[];
    /** Commands that the agent must cancel. */
    readonly cancel: readonly CommandId[];
  }
  const claimDue = async (device: DeviceRef, limit: number): Promise<Found> => {
    const [rows, { cancel }] = await Promise.all([claim(device, limit), findPending(db, device)]);
    return { rows, cancel };
  };
  const isEmpty = ({ rows, cancel }: Found): boolean => rows.length === 0 && cancel.length === 0;

  interface PollCall {
    readonly limit: number;
    readonly wait: number;
    readonly instanceId?: string | undefined;
    readonly formerInstanceId?: string | undefined;
  }

  /**
   * Claims what is due, or what becomes due while the agent waits. It claims nothing for an agent that has left, nor for one whose identity
   * another process has taken over.
   */
  const claimOrWait = async (device: DeviceRef, { limit, wait: seconds, instanceId, formerInstanceId }: PollCall, signal: AbortSignal): Promise<Found> => {
    const aliveForMs = (POLLS_MISSED * settings.pollIntervalSeconds + seconds) * 1_000;
    const claimAsHolder = async (): Promise<Found> => {
      await presence.polled(device, { instanceId: instanceId ?? null, formerInstanceId, aliveForMs });
      return claimDue(device, limit);
    };
    const wait = waiters.take({ tenantId: device.tenantId, id: device.deviceId }, seconds);
    try {
      let found = await claimAsHolder();
      while (isEmpty(found) && wait !== null && (await wait.next(signal))) found = await claimAsHolder();
      return found;
    } finally {
      wait?.end();
    }
  };

  return {
    poll: async ({ scope, reply, signal }, { deviceId, ...how }) => {
      const device = { tenantId: scope.tenantId, deviceId };
      const { rows, cancel } = await claimOrWait(device, how, signal);
      afterCommit.changed(rows.filter(({ again }) => !again).map(sentNow));
      for (const { again } of rows) if (again) telemetry.polledAgain();
      await finishUnacknowledged(
        rows.filter(({ requiresAck }) => !requiresAck),
        device,
      );
      reply.headers["x-svc-poll-interval"] = String(settings.pollIntervalSeconds);
      return { items: rows.map(toDelivered).map(({ command, delivery: given }) => ({ ...command, delivery: given })), cancel: [...cancel] };
    },
    ack: async ({ scope, fail }, { deviceId, ...ack }) => {
      const result = await delivery.ack({ tenantId: scope.tenantId, deviceId }, ack);
      if (result.result === "unknown") throw fail("COMMAND_NOT_FOUND", { commandId: ack.commandId });
      if (result.code === STATUS_UNKNOWN)
        throw new AppError("VALIDATION_FAILED", {
          details: { issues: [{ path: "status", code: "invalid_value", message: `one of ${ACK_STATUSES.join(", ")}` }], accepted: ACK_STATUSES },
        });
      return result;
    },
  };
};
