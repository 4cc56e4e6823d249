// Volumes of devices: what their agents find, daily and when somebody asks, and the removal of what belongs to no app.
import { contract, type Device, type DeviceId, type FoundVolume } from "../../../protocol/index.ts";
import { DAY_SECONDS, secondsFromNow } from "../../core/clock.ts";
import type { Clients, Tx } from "../../core/database.ts";
import { AppError, isAppError } from "../../core/errors.ts";
import { happened } from "../../core/events.ts";
import { implement } from "../../core/feature.ts";
import { becomeLeader } from "../../core/leader-election.ts";
import { orderOf } from "../../core/ports/command-outcomes.ts";
import { actorOf, type SystemScope } from "../../core/scope.ts";
import type { Backing } from "../apps/index.ts";
import type { Feature, FeatureKit } from "../kit.ts";
import {
  deleteVolumes,
  findScan,
  findUnscanned,
  findVolume,
  lockVolumes,
  pageOfVolumes,
  saveScan,
  saveSeen,
  saveVolume,
  toVolume,
  type VolumeRow,
  volumesOf,
} from "./store.ts";

export interface VolumesDeps extends Pick<FeatureKit, "db" | "clock" | "emit" | "enqueue"> {
  readonly apps: () => Backing;
  readonly findDevice: (scope: SystemScope, deviceId: string) => Promise<Device | undefined>;
  readonly isOpen: (scope: SystemScope, deviceId: string, commandId: string) => Promise<boolean>;
}

const BUDGET_SECONDS = 60;
const SCANNED_AT_ONCE = 50;
const MAX_APPS = 1_000;
const { scan, remove } = contract.volumes.commands;
const events = contract.volumes.events;

export const createVolumes = ({ db, clock, emit, enqueue, apps, findDevice, isOpen }: VolumesDeps): Feature<typeof contract.volumes> => {
  const requireDevice = async (scope: SystemScope, deviceId: string): Promise<Device> => {
    const device = await findDevice(scope, deviceId);
    if (device === undefined) throw new AppError("DEVICE_NOT_FOUND", { details: { deviceId } });
    return device;
  };
  const find = async (tx: Clients, scope: SystemScope, at: { readonly deviceId: string; readonly name: string }): Promise<VolumeRow> => {
    const row = await findVolume(tx, scope, at);
    if (row === null) throw new AppError("VOLUME_NOT_FOUND", { details: at });
    return row;
  };
  const dataOf = ({ deviceId, name, appId, size }: VolumeRow) => ({ deviceId, name, appId, size: size === null ? null : Number(size) });
  /** Volumes of all devices share names, so the device is the subject. */
  const tell = (tx: Tx, scope: SystemScope, event: typeof events.discovered | typeof events.removing | typeof events.removed, row: VolumeRow) =>
    emit(tx, [happened(scope, event, row.deviceId, dataOf(row))]);

  /** The device has these volumes and no others. */
  const keep = async (tx: Tx, scope: SystemScope, deviceId: DeviceId, found: readonly FoundVolume[]): Promise<Date> => {
    await lockVolumes(tx, scope, deviceId);
    const at = clock.now();
    const own = { tenantId: scope.tenantId };
    const before = new Map((await volumesOf(tx, own, deviceId)).map((row) => [row.name, row]));
    const named = found.flatMap(({ appId }) => appId ?? []);
    const known = new Set(
      (named.length === 0 ? [] : await apps().select(tx, own, named, MAX_APPS)).filter((app) => app.deviceId === deviceId).map(({ appId }) => appId),
    );
    const volumes = new Map(found.map((volume) => [volume.name, volume]));
    for (const volume of volumes.values())
      await saveSeen(tx, own, { deviceId, found: volume, at, appId: volume.appId !== null && known.has(volume.appId) ? volume.appId : null });
    const gone = [...before.values()].filter(({ name }) => !volumes.has(name));
    await deleteVolumes(
      tx,
      own,
      deviceId,
      gone.map(({ name }) => name),
    );
    await saveScan(tx, own, deviceId, { discoveredAt: at });
    for (const row of gone) await tell(tx, own, events.removed, row);
    for (const row of await volumesOf(tx, own, deviceId)) if (!before.has(row.name)) await tell(tx, own, events.discovered, row);
    return at;
  };

  const order = async (tx: Tx, scope: SystemScope, deviceId: DeviceId, by: string) => {
    const now = clock.now();
    const { commandIds, notify } = await enqueue(tx, scope, [
      orderOf(scan, { deviceId, key: `scan:${now.getTime()}`, orderedBy: by, payload: { budgetSeconds: BUDGET_SECONDS } }),
    ]);
    await saveScan(tx, scope, deviceId, { orderedAt: now, commandId: commandIds[0] ?? null });
    return notify;
  };

  return {
    handlers: implement(contract.volumes, {
      listOfDevice: async ({ scope }, { deviceId }) => {
        const device = await requireDevice(scope, deviceId);
        const volumes = (await volumesOf(db, scope, deviceId)).map(toVolume);
        const discoveredAt = (await findScan(db, scope, deviceId))?.discoveredAt?.toISOString() ?? null;
        const totalSize = volumes.reduce((sum, { size = 0 }) => sum + size, 0);
        return {
          deviceId: device.deviceId,
          tenantId: scope.tenantId,
          deploymentId: device.deploymentId,
          volumes,
          totalVolumes: volumes.length,
          totalSize,
          discoveredAt,
        };
      },
      list: async ({ scope }, query) => {
        const { items, ...page } = await pageOfVolumes(db, scope, query);
        return { ...page, items: items.map(toVolume) };
      },
      get: async ({ scope }, at) => {
        await requireDevice(scope, at.deviceId);
        return toVolume(await find(db, scope, at));
      },
      refresh: async ({ scope, commit, fail }, { deviceId }) => {
        const device = await requireDevice(scope, deviceId);
        if (device.status !== "online") throw fail("DEVICE_OFFLINE", { deviceId });
        const running = (await findScan(db, scope, deviceId))?.commandId ?? null;
        if (running !== null && (await isOpen(scope, deviceId, running))) throw fail("VOLUME_SCAN_RUNNING", { deviceId });
        return commit(async (tx, afterwards) => {
          afterwards(await order(tx, scope, device.deviceId, actorOf(scope.principal)));
          return { success: true as const, message: "The device looks for its volumes. Read them again in a moment.", deviceId: device.deviceId };
        });
      },
      report: async ({ scope }, { deviceId, volumes }) => {
        const { principal } = scope;
        if (principal.kind !== "agent" || principal.deviceId !== deviceId) throw new AppError("FORBIDDEN", { details: { reason: "not_own_device" } });
        const at = await db.tx((tx) => keep(tx, scope, principal.deviceId, volumes));
        return { deviceId: principal.deviceId, totalVolumes: new Set(volumes.map(({ name }) => name)).size, discoveredAt: at.toISOString() };
      },
      remove: async ({ scope, commit, fail }, { deviceId, name, confirm }) => {
        await requireDevice(scope, deviceId);
        return commit(async (tx, afterwards) => {
          await lockVolumes(tx, scope, deviceId);
          const row = await find(tx, scope, { deviceId, name });
          if (confirm !== name) throw fail("VOLUME_NOT_CONFIRMED", { name });
          if (row.appId !== null || row.inUse) throw fail("VOLUME_IN_USE", { name, appId: row.appId ?? "unknown" });
          if (row.status === "removing") return null;
          const key = `volume:${name.slice(0, 120)}:${clock.now().getTime()}`;
          const { commandIds, notify } = await enqueue(tx, scope, [
            orderOf(remove, { deviceId: row.deviceId, key, orderedBy: actorOf(scope.principal), payload: { name } }),
          ]);
          await saveVolume(tx, scope, { deviceId, name }, { status: "removing", commandId: commandIds[0] ?? null });
          await tell(tx, scope, events.removing, row);
          afterwards(notify);
          return null;
        });
      },
    }),
    outcomes: {
      scan: async (tx, outcome) => {
        const { scope, deviceId, commandId } = outcome;
        const known = await findScan(tx, scope, deviceId);
        if (known?.commandId === commandId) await saveScan(tx, scope, deviceId, { commandId: null });
        if (outcome.kind === "succeeded") await keep(tx, scope, deviceId, outcome.output.volumes);
      },
      remove: async (tx, outcome) => {
        const { scope, deviceId, payload, commandId } = outcome;
        const at = { deviceId, name: payload.name };
        await lockVolumes(tx, scope, deviceId);
        const row = await findVolume(tx, { tenantId: scope.tenantId }, at);
        if (row === null || row.commandId !== commandId) return;
        if (outcome.kind === "succeeded") {
          await deleteVolumes(tx, scope, deviceId, [row.name]);
          return tell(tx, scope, events.removed, row);
        }
        await saveVolume(tx, scope, at, { status: "present", commandId: null });
        const reason = outcome.kind === "unsuccessful" ? (outcome.code ?? outcome.status) : "INVALID_OUTPUT";
        await emit(tx, [happened(scope, events.removalFailed, deviceId, { ...dataOf(row), reason })]);
      },
    },
    jobs: [
      {
        name: "volumes.scan",
        everyMs: 60_000,
        run: async () => {
          const notices = await db.tx(async (tx) => {
            if (!(await becomeLeader(tx, "volumeScans"))) return [];
            const made: (() => void)[] = [];
            for (const { tenant_id, device_id } of await findUnscanned(tx, secondsFromNow(-DAY_SECONDS, clock.now()), SCANNED_AT_ONCE)) {
              try {
                made.push(await order(tx, { tenantId: tenant_id }, device_id, "system"));
              } catch (error) {
                if (!isAppError(error)) throw error;
              }
            }
            return made;
          });
          for (const notify of notices) notify();
          return notices.length === SCANNED_AT_ONCE;
        },
      },
    ],
  };
};
