// Secret rotations that the death of the agent or the gateway interrupts at each step: nobody is locked out, and in the end only the new secret works.
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { type Http, NoAnswer, type PairedDevice, packageRoot, systemTime as time, until } from "../../../agent-sim/agent/index.ts";
import { createLatency } from "../../../agent-sim/fleet/latency.ts";
import { plainEnv, startChild } from "../../kit/net/children.ts";
import { inLanes } from "../rig/calls.ts";
import { type Rig, urlOf, withRig } from "../rig/rig.ts";
import { ROTATION_POINTS, type RotationOrders } from "../rig/rotation-points.ts";
import { beginRotation, rotateSecret, statusWith } from "../rig/secrets.ts";
import type { Context, Scenario, ScenarioOutcome } from "../scenario.ts";

const WITHIN_MS = 60_000;
const PATHS = { begin: "/rotate", fetch: "/secrets", use: "/agent/me" } as const;
type Step = keyof typeof PATHS;
const STEPS = Object.keys(PATHS) as Step[];
/** The gateway dies before it receives a step, or after the step and before its answer. */
const MOMENTS = ["before", "after"] as const;
type Moment = (typeof MOMENTS)[number];

/** Kills the gateway once, before or after the first call of the step. */
const deadlyAt = (rig: Rig, step: Step, moment: Moment): Http => {
  let died = false;
  const die = async (): Promise<never> => {
    const [node] = rig.nodes;
    await node?.kill();
    await node?.start();
    throw new NoAnswer(`the gateway died ${moment} ${step}`);
  };
  return {
    close: () => undefined,
    call: async (request) => {
      const hit = !died && request.path.endsWith(PATHS[step]);
      died ||= hit;
      if (hit && moment === "before") return die();
      const answer = await rig.http.call(request);
      return hit ? die() : answer;
    },
  };
};

const rotateOverGatewayDeath = async (rig: Rig, member: PairedDevice, { file, step, moment }: { file: string; step: Step; moment: Moment }): Promise<void> => {
  await rotateSecret(deadlyAt(rig, step, moment), rig.credentials, member, file);
};

/** Returns whether the agent died at its point; its second life runs to its end. */
const rotateOverAgentDeath = async (rig: Rig, orders: Omit<RotationOrders, "url">, file: string): Promise<boolean> => {
  await beginRotation(rig.http, rig.credentials, orders.member);
  const program = join(packageRoot(import.meta.dirname), "dist", "test", "chaos", "rig", "rotation-victim.js");
  const live = async (point: RotationOrders["point"]): Promise<boolean> => {
    await writeFile(file, JSON.stringify({ ...orders, point, url: urlOf(rig.agentProxy) } satisfies RotationOrders));
    const child = startChild({ command: process.execPath, words: [program, file], env: plainEnv() });
    if (!(await until(time, () => !child.alive, { everyMs: 20, withinMs: WITHIN_MS }))) await child.kill();
    return child.process.signalCode === "SIGKILL";
  };
  const died = await live(orders.point);
  await live(null);
  return died;
};

const Stored = z.object({ current: z.string(), next: z.string().nullable() });
const known = async (file: string, { secret }: PairedDevice): Promise<string> => {
  const text = await readFile(file, "utf8").catch(() => null);
  return text === null ? secret : Stored.parse(JSON.parse(text)).current;
};

const run = ({ seed, scale, control }: Context): Promise<ScenarioOutcome> =>
  withRig({ nodes: 1, seed }, async (rig) => {
    const folder = await mkdtemp(join(tmpdir(), "mooring-rotation-"));
    const repeats = scale.agents > 50 ? 10 : 1;
    const agentDeaths = ROTATION_POINTS.flatMap((point) => Array.from({ length: repeats }, () => point));
    // The control breaks only the agent's memory.
    const gatewayDeaths = control ? [] : STEPS.flatMap((step) => MOMENTS.flatMap((moment) => Array.from({ length: repeats }, () => ({ step, moment }))));
    const members = await rig.provision(agentDeaths.length + gatewayDeaths.length);
    const fileOf = ({ deviceId }: PairedDevice): string => join(folder, `${deviceId}.keys`);
    const latency = createLatency();
    const state = { faults: gatewayDeaths.length, locked: 0, oldAccepted: 0, unfinished: 0 };
    const timed = async (work: () => Promise<unknown>): Promise<void> => {
      const startMs = time.elapsedMs();
      await work();
      latency.add(time.elapsedMs() - startMs);
    };
    try {
      await inLanes(agentDeaths, 2, async (point, index) => {
        const member = members[index] as PairedDevice;
        await timed(async () => {
          const keys = control ? null : fileOf(member);
          if (await rotateOverAgentDeath(rig, { member, keys, point }, join(folder, `${index}.orders`))) state.faults += 1;
        });
      });
      await inLanes(gatewayDeaths, 1, async (death, index) => {
        const member = members[agentDeaths.length + index] as PairedDevice;
        await timed(() => rotateOverGatewayDeath(rig, member, { file: fileOf(member), ...death }));
      });
      for (const member of members) {
        const secret = await known(fileOf(member), member);
        if ((await statusWith(rig.http, { ...member, secret })) !== 200) state.locked += 1;
        if (secret === member.secret) state.unfinished += 1;
        else if ((await statusWith(rig.http, member)) !== 401) state.oldAccepted += 1;
      }
      return {
        n: members.length,
        faults: state.faults,
        violations: { "locked-out": state.locked, "old-secret-accepted": state.oldAccepted, "not-finished": state.unfinished },
        latencyMs: latency.percentiles(),
        notes: [
          `n counts rotations, each interrupted once: ${agentDeaths.length} by kill -9 of the agent at ${ROTATION_POINTS.length} points, ${gatewayDeaths.length} by kill -9 of the gateway before or after ${STEPS.length} steps`,
          "ms are for a whole rotation, including death and second life",
        ],
      };
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

export const rotationScenarios: readonly Scenario[] = [
  {
    name: "secret-rotation",
    promise: "S13",
    claim: "a rotation that kill -9 of agent or gateway interrupts at any step still completes: the agent is never locked out, and the old secret is refused",
    control: { how: "each death makes the agent forget the offered secret", red: "locked-out" },
    run,
  },
];
