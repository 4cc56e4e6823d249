// A tick looks at few sessions and yet closes each that time makes due, as if it had looked at all of them.
import { describe, expect, test } from "vitest";
import { type AgentId, CLOSE, type DeviceId, type TenantId } from "../../protocol/index.ts";
import { createHeartbeatPacing } from "../../server/gateway/channel/heartbeat-pacing.ts";
import { type AgentSession, dueClose, newSession, noteNews, type Phase } from "../../server/gateway/channel/session.ts";
import { createSessionRegistry } from "../../server/gateway/channel/session-registry.ts";
import { channelSettings } from "../../server/gateway/channel/settings.ts";
import { newStats } from "../../server/gateway/channel/stats.ts";
import { createTick } from "../../server/gateway/channel/tick.ts";
import type { SocketLink } from "../../server/gateway/uws/socket.ts";
import { openMemorySessionOwners } from "../../server/platform/cluster/bus-memory.ts";

const settings = channelSettings(30, { sessionMaxAgeMs: 400_000, flushEveryMs: 1e9, tenantsEveryMs: 1e9 });
const agent = { agentId: "agt_1" as AgentId, deviceId: "dev_1" as DeviceId, tenantId: "tnt_1" as TenantId };

const start = () => {
  const at = { ms: 5_000_300 };
  const clock = { now: () => new Date(at.ms), elapsed: () => at.ms };
  const busy = new Set<AgentSession>();
  const stats = newStats();
  const quiet = { push: async () => undefined, onError: () => undefined };
  const registry = createSessionRegistry({
    nodeId: "node",
    busy,
    onError: quiet.onError,
    commands: { push: quiet.push, takesNow: () => false, pushNow: () => undefined },
    delivery: { writeSent: () => undefined },
    acks: { cancel: () => undefined },
    notifier: { evictAt: () => undefined },
    owners: openMemorySessionOwners(),
    stats,
  });
  const pacing = createHeartbeatPacing({ registry, clock, settings });
  const closed = new Map<AgentSession, { readonly code: number; readonly atMs: number }>();
  const looks = { count: 0 };
  const buffered = new Map<AgentSession, number>();
  const end = (session: AgentSession, code: number): void => {
    closed.set(session, { code, atMs: at.ms });
    registry.remove(session);
  };
  const load = { overloaded: false };
  const tick = createTick({
    registry,
    closer: {
      retire: async (sessions, { code }) => {
        for (const session of sessions) end(session, code);
      },
      closeSuspended: async () => undefined,
    },
    ...quiet,
    pacing: { update: (read) => pacing.update({ ...read, ...load }), seconds: 30 },
    flush: async () => undefined,
    loopDelayMs: () => 0,
    condition: { draining: false, overloaded: false },
    stats,
    clock,
    settings,
    log: { warn: () => undefined },
  });
  const open = (): AgentSession => {
    const session = newSession({ id: "ses_1", agent, signatureVersion: 2, ip: "127.0.0.1", heartbeatLimit: null }, settings, at.ms);
    const wrote = () => {
      busy.add(session);
      return "sent" as const;
    };
    const link: SocketLink = {
      closed: false,
      send: wrote,
      sendText: wrote,
      cork: (write) => write(),
      ping: () => undefined,
      bufferedBytes: () => {
        looks.count += 1;
        return buffered.get(session) ?? 0;
      },
      end: (code) => end(session, code),
    };
    session.link = link;
    registry.open.add(session);
    pacing.start(session);
    link.send("welcome");
    return session;
  };
  const enter = (session: AgentSession, phase: Phase): void => {
    session.phase = phase;
    session.phaseAt = at.ms;
    busy.add(session);
  };
  const hear = (session: AgentSession): void => {
    session.lastSeenAt = at.ms;
    noteNews(session, registry.news);
    session.link?.send("answer");
  };
  const seconds = (count: number): void => {
    for (let second = 0; second < count; second += 1) {
      at.ms += 1_000;
      tick();
    }
  };
  return { at, open, enter, hear, seconds, tick, closed, looks, buffered, load, stats, registry };
};

const random = (seed: number): (() => number) => {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
};

describe("a tick", () => {
  test("looks at no quiet session until its time has come", () => {
    const { open, enter, seconds, looks, closed } = start();
    const sessions = Array.from({ length: 200 }, open);
    for (const session of sessions) enter(session, "ready");
    seconds(1);
    looks.count = 0;
    seconds(98);
    expect(looks.count).toBe(0);
    seconds(3);
    expect([...closed.values()].map(({ code }) => code)).toEqual(sessions.map(() => CLOSE.heartbeatTimeout.code));
  });

  test("looks again at a session that something is written to, and counts its backlog until it is gone", () => {
    const { open, enter, seconds, hear, buffered, stats, registry } = start();
    const session = open();
    enter(session, "ready");
    seconds(2);
    expect(registry.busy.size).toBe(0);
    buffered.set(session, 9_000);
    hear(session);
    seconds(3);
    expect(stats.bufferedBytes).toBe(9_000);
    buffered.set(session, 0);
    seconds(1);
    expect([stats.bufferedBytes, registry.busy.size]).toEqual([0, 0]);
  });

  test.each([1, 2, 3, 4, 5, 6, 7, 8])("leaves no session open that time has made due, whatever happened before (%i)", (seed) => {
    const { at, open, enter, hear, seconds, buffered, load, registry, closed } = start();
    const next = random(seed);
    const count = (most: number): number => Math.floor(next() * most);
    const steps: ((session: AgentSession) => void)[] = [
      hear,
      hear,
      hear,
      (session) => enter(session, "ready"),
      (session) => enter(session, "ready"),
      (session) => enter(session, "proving"),
      (session) => enter(session, "leaving"),
      (session) => void buffered.set(session, count(2) * 600_000),
    ];
    for (let round = 0; round < 600; round += 1) {
      if (registry.open.size < 30) open();
      if (count(40) === 0) load.overloaded = !load.overloaded;
      const sessions = [...registry.open];
      for (let step = 0; step < 6; step += 1) {
        const session = sessions[count(sessions.length)];
        if (session !== undefined) steps[count(steps.length)]?.(session);
      }
      for (const session of buffered.keys()) if (registry.open.has(session)) session.link?.send("more");
      seconds(1);
      const late = [...registry.open].filter((session) => dueClose(session, settings, at.ms) !== null);
      expect(late).toEqual([]);
    }
    expect(closed.size).toBeGreaterThan(50);
  });
});
