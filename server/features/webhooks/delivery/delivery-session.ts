// One run of the delivery job: from the first endpoint that is due until none is left.
import { setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "../../../core/clock.ts";
import type { Db } from "../../../platform/database/db.ts";
import type { SecretBox } from "../../../platform/keys/secrets.ts";
import type { Log } from "../../../platform/telemetry/log.ts";
import { claimEndpoints, handBack, releaseEndpoints, renewLeases } from "../store/work.ts";
import type { Attempt } from "./attempt.ts";
import { createRunner, type Runner } from "./endpoint-runner.ts";
import { createLoader } from "./loader.ts";
import type { EffectDeps } from "./results.ts";
import { createSender } from "./sender.ts";
import { createWriter } from "./writer.ts";

export interface WorkerSettings {
  /** The longest time of an attempt. */
  readonly timeoutMs: number;
  readonly leaseSeconds: number;
  readonly renewEveryMs: number;
  /** Looks for endpoints that are due, and lets go of those that have had nothing for two rounds. */
  readonly tickMs: number;
  /** Endpoints per claim, and the pause between two claims, in which other nodes get their share. */
  readonly claimChunk: number;
  readonly claimPauseMs: number;
  readonly perTenant: number;
  readonly perNode: number;
}

export const WORKER_DEFAULTS: WorkerSettings = {
  timeoutMs: 15_000,
  leaseSeconds: 12,
  renewEveryMs: 4_000,
  tickMs: 1_000,
  claimChunk: 32,
  claimPauseMs: 20,
  perTenant: 20,
  perNode: 500,
};

export interface WorkerDeps extends EffectDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Pick<Log, "error">;
  readonly secretBox: Pick<SecretBox, "open">;
  readonly attempt: Attempt;
  readonly holder: string;
  readonly settings: WorkerSettings;
}

/** A node begins nothing in the last moments of a lease. */
const MARGIN_MS = 1_000;
const IDLE_TICKS = 2;

export const createDeliverySession = (deps: WorkerDeps) => {
  const { db, clock, holder, settings } = deps;
  const runners = new Map<string, Runner>();
  const stop = new AbortController();
  let fail: (error: unknown) => void = () => undefined;
  const broken = new Promise<never>((_, reject) => {
    fail = reject;
  });
  // It is heard where the session waits, which may already be over.
  broken.catch(() => undefined);
  const guarded = (work: Promise<unknown>): void => void work.catch(fail);

  const loader = createLoader({ ...deps, guarded, loaded: (runner) => sender.pump(runner) });
  const writer = createWriter({ ...deps, guarded, written: (runner) => loader.ask(runner) });
  const sender = createSender({ ...deps, signal: stop.signal, ask: loader.ask, settled: writer.add });

  const leaseEnd = (begunMs: number): number => begunMs + settings.leaseSeconds * 1_000 - MARGIN_MS;
  let claiming: Promise<void> | null = null;
  const claimAll = async (): Promise<void> => {
    while (!stop.signal.aborted && sender.isFree()) {
      const begunMs = clock.elapsed();
      const leased = await claimEndpoints(db, holder, settings.leaseSeconds, settings.claimChunk);
      for (const each of leased) {
        runners.get(each.webhook_id)?.stop();
        const runner = createRunner(each, leaseEnd(begunMs));
        runners.set(each.webhook_id, runner);
        loader.ask(runner);
      }
      if (leased.length < settings.claimChunk) return;
      await sleep(settings.claimPauseMs);
    }
  };
  const claim = (): Promise<void> =>
    (claiming ??= claimAll().finally(() => {
      claiming = null;
    }));

  const held = (): Runner[] => [...runners.values()].filter(({ isStopped }) => !isStopped);
  let renewAtMs = clock.elapsed() + settings.renewEveryMs;
  const renew = async (): Promise<void> => {
    const begunMs = clock.elapsed();
    if (begunMs < renewAtMs || runners.size === 0) return;
    renewAtMs = begunMs + settings.renewEveryMs;
    const mine = held();
    const kept = await renewLeases(db, mine, settings.leaseSeconds);
    for (const runner of mine) {
      if (kept.has(runner.webhookId)) runner.leasedUntilMs = leaseEnd(begunMs);
      else runner.stop();
    }
  };

  /** Looks again at what is idle, because a hint may be lost; lets go of what stays idle. */
  const release = async (): Promise<void> => {
    const idle = held().filter((runner) => runner.isDry && runner.isEmpty());
    for (const runner of held()) runner.idleTicks = idle.includes(runner) ? runner.idleTicks + 1 : 0;
    const leaving = idle.filter(({ idleTicks }) => idleTicks >= IDLE_TICKS);
    for (const runner of leaving) runner.isLeaving = true;
    const over = leaving.map(({ webhookId, fence, state }) => ({ webhookId, fence, epoch: state?.epoch ?? -1 }));
    const released = over.length === 0 ? new Set<string>() : await releaseEndpoints(db, over);
    for (const runner of leaving) {
      runner.isLeaving = false;
      if (released.has(runner.webhookId)) runner.stop();
    }
    // By now another runner may hold an endpoint that was released.
    for (const [webhookId, runner] of runners) if (runner.isStopped && runner.isEmpty()) runners.delete(webhookId);
    for (const runner of held()) {
      runner.stir();
      loader.ask(runner);
    }
  };

  const tick = async (): Promise<void> => {
    await renew();
    await release();
    await claim();
  };

  const end = async (isBroken: boolean): Promise<void> => {
    stop.abort();
    await sender.idle();
    if (isBroken) return;
    await Promise.all([writer.idle(), loader.idle(), claiming]);
    if (runners.size > 0) await handBack(db, held());
  };

  return {
    run: async (signal: AbortSignal): Promise<void> => {
      let isBroken = false;
      try {
        await claim();
        while (runners.size > 0 && !signal.aborted) {
          await Promise.race([sleep(settings.tickMs, undefined, { signal }).catch(() => undefined), broken]);
          if (!signal.aborted) await Promise.race([tick(), broken]);
        }
      } catch (error) {
        isBroken = true;
        throw error;
      } finally {
        await end(isBroken);
      }
    },
    wake: (tenantIds: readonly string[]): void => {
      const named = new Set(tenantIds);
      for (const runner of runners.values()) {
        if (!named.has(runner.tenantId) || runner.isStopped) continue;
        runner.stir();
        loader.ask(runner);
      }
      guarded(claim());
    },
  };
};
export type DeliverySession = ReturnType<typeof createDeliverySession>;
