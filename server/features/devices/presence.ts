// Presence of devices: sockets and REST calls keep a device online, a sweep takes it offline. Each change of status writes its event in the same transaction.
import { contract } from "../../../protocol/index.ts";
import { AppError } from "../../core/errors.ts";
import { type Emit, happened, type SqlTx } from "../../core/events.ts";
import type { AgentSessions, DuplicateProbe, PresenceUpdate, SessionHello, SocketPresence } from "../../core/ports/agent-sessions.ts";
import type { DeviceRef } from "../../core/ports/delivery.ts";
import { splitBatchOnFailure } from "../../core/rows/split-batch.ts";
import type { CreateBatch } from "../../platform/database/batch.ts";
import type { Db } from "../../platform/database/db.ts";
import { failsAlone, isTemporary } from "../../platform/database/db-errors.ts";
import type { Job } from "../../platform/jobs.ts";
import { createOfflineSweep, OFFLINE_JOB } from "./offline-sweep.ts";
import type { DeviceSettings } from "./settings.ts";
import type { SignatureLock } from "./signature-lock.ts";
import { type Contact, type Contacted, contactPresence, type Poll, refusePoll } from "./store/contact.ts";
import { findHolders, findNotDeleted, openPresence, welcomeDevices } from "./store/hello.ts";
import {
  closePresence,
  commitToDisk,
  findSuperseded,
  flushBeats,
  heldDigests,
  leavePresence,
  markDuplicateReported,
  releasePresence,
  type StatusChange,
  setOnline,
} from "./store/presence.ts";
import { sweepNeverConnected } from "./store/sweep.ts";

export interface PresenceDeps {
  readonly db: Db;
  readonly emit: Emit;
  readonly createBatch: CreateBatch;
  readonly signatureLock: Pick<SignatureLock, "locked">;
  readonly probe: DuplicateProbe;
  readonly nodeId: string;
  /** Runs a job again soon. */
  readonly wakeJob?: ((name: string) => void) | undefined;
  readonly settings: DeviceSettings;
  /** Called for an update that the database rejects. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

export interface OpenedSession {
  readonly epoch: number;
  readonly previousNodeId: string | null;
  readonly previousSessionId: string | null;
  readonly previousInstanceId: string | null;
  readonly pushedOut: number;
}

export interface Presence extends SocketPresence, Pick<AgentSessions, "holder" | "reportDuplicate"> {
  /** Call it first in the transaction of the hellos, each of another device. Answers in order. Throws FORBIDDEN if a device was removed. */
  open(tx: SqlTx, hellos: readonly SessionHello[]): Promise<readonly OpenedSession[]>;
  /** Records a signed REST call and returns the database's time of it; null if the device was removed. */
  contact(scope: Pick<DeviceRef, "tenantId">, contact: Omit<Contact, "poll">): Promise<Date | null>;
  /** Records a poll. Throws DUPLICATE_IDENTITY, and records nothing, while another process uses this identity. */
  polled(device: DeviceRef, poll: Poll): Promise<void>;
  /** The device reported over REST that it shuts down. */
  reportedOffline(deviceId: string): Promise<void>;
  readonly jobs: readonly Job[];
}

const { online, offline, duplicateIdentity } = contract.devices.events;

/** `holder` names the way in which the other process is connected. */
const duplicate = (holder: "socket" | "poll", retryAfter: number): AppError =>
  new AppError("DUPLICATE_IDENTITY", { retryAfter, details: { reason: "duplicate_identity", holder } });

const toEvent = (change: StatusChange, status: "online" | "offline") =>
  happened({ tenantId: change.tenant_id }, status === "online" ? online : offline, change.device_id, {
    deviceId: change.device_id,
    status,
    previous: change.previous,
    ...(change.hostname === null ? {} : { hostname: change.hostname }),
    ...(change.reason === null ? {} : { reason: change.reason }),
    ...(change.last_seen_at === null ? {} : { lastSeen: change.last_seen_at.toISOString() }),
  });

export const createPresence = (deps: PresenceDeps): Presence => {
  const { db, emit, createBatch, signatureLock, probe, nodeId, settings, wakeJob = () => undefined, onError = () => undefined } = deps;
  const emitChanges = async (tx: SqlTx, changes: readonly StatusChange[], status: "online" | "offline"): Promise<void> => {
    if (changes.length > 0)
      await emit(
        tx,
        changes.map((change) => toEvent(change, status)),
      );
  };
  const setOnlineAndEmit = async (tx: SqlTx, deviceIds: readonly string[]): Promise<void> => emitChanges(tx, await setOnline(tx, deviceIds), "online");

  const contact = async (scope: Pick<DeviceRef, "tenantId">, news: Contact): Promise<Contacted | undefined> => {
    const seen = await contactPresence(db, scope, { contact: news, offlineAfterMs: settings.offlineAfterMs });
    // Rare, because most contacts find the device online. If this node crashes before it, the next contact sets the device online.
    if (seen?.greet === true) await db.sqlTx((tx) => setOnlineAndEmit(tx, [news.deviceId]));
    return seen;
  };

  const reportDuplicate: AgentSessions["reportDuplicate"] = ({ device, nodeId: refusedBy, machine: { hostname, agentVersion } }) =>
    db.sqlTx(async (tx) => {
      const reported = await markDuplicateReported(tx, device, settings.duplicateReportEveryMs);
      if (reported === undefined) return;
      const { tenantId, deviceId } = reported;
      await emit(tx, [happened({ tenantId }, duplicateIdentity, deviceId, { deviceId, nodeId: refusedBy, hostname, agentVersion })]);
    });

  const polled = async (device: DeviceRef, poll: Poll): Promise<void> => {
    const { instanceId } = poll;
    if (instanceId !== null && (await probe(device, instanceId))) {
      await reportDuplicate({ device, nodeId, machine: {} });
      throw duplicate("socket", settings.duplicatePauseSeconds);
    }
    const seen = await contact(device, { deviceId: device.deviceId, heartbeat: false, metrics: null, poll });
    // Nobody can ping a poller. If the first process polls again after the second was refused, both live; after a restart it would not.
    if (seen?.contested === true) await reportDuplicate({ device, nodeId, machine: {} });
    if (seen !== undefined || instanceId === null) return;
    const aliveForSeconds = await refusePoll(db, device, instanceId);
    if (aliveForSeconds !== undefined) throw duplicate("poll", aliveForSeconds);
  };

  const emitOffline = (tx: SqlTx, changes: readonly StatusChange[]): Promise<void> => emitChanges(tx, changes, "offline");
  const sweep = createOfflineSweep({ db, emitOffline, wake: () => wakeJob(OFFLINE_JOB), settings });
  const sweepUnconnected = (): Promise<boolean> =>
    db.sqlTx(async (tx) => {
      const changes = await sweepNeverConnected(tx, { afterMs: settings.neverConnectedMs, limit: settings.sweepBatch });
      await emitOffline(tx, changes);
      return changes.length >= settings.sweepBatch;
    });
  const leave = async (
    session: { readonly deviceId: string; readonly epoch: number | null },
    goodbye: { readonly reason: string; readonly expectBackMs: number },
  ) => {
    await db.sqlTx((tx) => leavePresence(tx, session, goodbye));
    sweep.announced();
  };

  /** Returns the devices whose update came from their newest session. */
  const flush = (updates: readonly PresenceUpdate[]): Promise<readonly (string | null)[]> =>
    db.sqlTx(async (tx) => {
      const { current = [], revived = null } = (await flushBeats(tx, updates)) ?? {};
      // Heartbeats do not wait for the disk; a status change with its event does.
      if (revived !== null) await Promise.all([commitToDisk(tx), setOnlineAndEmit(tx, revived)]);
      if (current === null) return updates.map(({ deviceId }) => deviceId);
      const ids = new Set(current);
      return updates.map(({ deviceId }) => (ids.has(deviceId) ? deviceId : null));
    });

  return {
    open: async (tx, hellos) => {
      const opened = new Map((await openPresence(tx, hellos, settings.offlineAfterMs)).map((row) => [row.device_id, row]));
      // Neither needs the other's answer, so they share one round trip.
      const [remaining, changed] = await Promise.all([findNotDeleted(tx, hellos), welcomeDevices(tx, hellos)]);
      const found = new Set(remaining.map(({ device_id }) => device_id));
      await emitChanges(
        tx,
        changed.filter(({ previous }) => previous !== "online"),
        "online",
      );
      await signatureLock.locked(
        tx,
        changed.filter(({ locked }) => locked),
      );
      return hellos.map(({ device: { deviceId } }) => {
        const row = opened.get(deviceId);
        if (row === undefined || !found.has(deviceId)) throw new AppError("FORBIDDEN", { details: { reason: "device_revoked" } });
        return {
          epoch: row.epoch,
          previousNodeId: row.node_id,
          previousSessionId: row.session_id,
          previousInstanceId: row.instance_id,
          pushedOut: row.pushed_out,
        };
      });
    },
    holder: createBatch(async (devices: readonly DeviceRef[]) => {
      const holders = new Map((await findHolders(db, devices)).map((holder) => [holder.deviceId, holder]));
      return devices.map(({ deviceId }) => holders.get(deviceId) ?? null);
    }, settings.hellos),
    reportDuplicate,
    flush: async (updates) => {
      const settled = await splitBatchOnFailure(updates, flush, failsAlone);
      for (const result of settled) {
        if (result.status === "fulfilled") continue;
        if (isTemporary(result.reason)) throw result.reason;
        onError(result.reason);
      }
      return new Set(settled.flatMap((result) => (result.status === "fulfilled" && result.value !== null ? [result.value] : [])));
    },
    digests: async () => new Map((await heldDigests(db, nodeId)).map(({ part, digest }) => [part, digest])),
    superseded: async (sessions) =>
      new Map(
        (await findSuperseded(db, sessions)).map((row) => [
          row.device_id,
          { why: row.removed ? "removed" : row.handed_over ? "handedOver" : "superseded", pushedOut: row.pushed_out },
        ]),
      ),
    release: async (sessions) => new Set((await releasePresence(db, sessions)).map(({ device_id }) => device_id)),
    closed: async (sessions) => {
      if (sessions.length > 0) await closePresence(db, sessions, settings.closeGraceMs);
    },
    goodbye: leave,
    contact: async (scope, news) => (await contact(scope, { ...news, poll: null }))?.at ?? null,
    polled,
    reportedOffline: (deviceId) => leave({ deviceId, epoch: null }, { reason: "reported", expectBackMs: 0 }),
    jobs: [sweep.job, { name: "devices.never-connected", everyMs: settings.neverConnectedEveryMs, run: sweepUnconnected }],
  };
};
