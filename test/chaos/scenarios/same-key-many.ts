// One idempotency key in many concurrent posts for many devices, among them posts for one device, on two nodes and across the death of one.
import { z } from "zod";
import { callWithRetry, type Http, type HttpAnswer, type HttpCall, systemTime as time } from "../../../agent-sim/agent/index.ts";
import { createLatency } from "../../../agent-sim/fleet/latency.ts";
import { readTruth } from "../check/truth.ts";
import { headersOf, inLanes, isSuccess, orNoAnswer, patience, tally, withClients } from "../rig/calls.ts";
import { withRig } from "../rig/rig.ts";
import type { Context, Scenario, ScenarioOutcome } from "../scenario.ts";

const DEVICES = 40;
const LANES = 4;
const WITHIN_MS = 60_000;
const Made = z.object({ commandId: z.string(), deviceId: z.string() });
const Many = z.object({ data: z.object({ items: z.array(z.object({ deviceId: z.string(), command: Made.nullable() })) }) });
const One = z.object({ data: Made });

interface Post {
  readonly key: string;
  readonly deviceIds: readonly string[];
  /** Only the first of the devices, by the call for one. */
  readonly alone: boolean;
}

const run = async ({ seed, scale, control }: Context): Promise<ScenarioOutcome> =>
  withRig({ nodes: 2, seed }, (rig) =>
    withClients(rig.nodes, async (clients) => {
      // No agent is connected, so only the posts change commands.
      const ids = (await rig.provision(DEVICES)).map(({ deviceId }) => deviceId);
      const [keys, posts] = scale.agents > 50 ? [30, 16] : [12, 8];
      const commandsOf = new Map<string, Set<string>>();
      const latency = createLatency();
      const state = { unanswered: 0, refused: 0, faults: 0 };
      const requestOf = ({ key, deviceIds, alone }: Post, request: string): HttpCall => ({
        method: "POST",
        path: alone ? `/v1/devices/${deviceIds[0]}/commands` : "/v1/devices/commands",
        headers: { ...headersOf(rig.credentials), "idempotency-key": key },
        body: JSON.stringify({ ...(alone ? {} : { deviceIds }), type: "echo", payload: { request } }),
      });
      const note = ({ body }: HttpAnswer, { alone }: Post, request: string): void => {
        const made = alone ? [One.parse(body).data] : Many.parse(body).data.items.map(({ command }) => command);
        for (const command of made)
          if (command === null) state.refused += 1;
          else {
            const place = `${request} ${command.deviceId}`;
            commandsOf.set(place, (commandsOf.get(place) ?? new Set()).add(command.commandId));
          }
      };
      const attempt = async (request: string, turn: number): Promise<void> => {
        const startMs = time.elapsedMs();
        let tries = turn;
        // Each post names the devices in an order of its own, so that two of them meet at every device.
        const turned = [...ids.slice(turn), ...ids.slice(0, turn)];
        const deviceIds = turn % 2 === 0 ? turned : turned.toReversed();
        const alone = turn % 4 === 3;
        const call = (): Promise<HttpAnswer> => {
          const client = clients[tries++ % clients.length] as Http;
          return client.call(requestOf({ key: control ? `${request}-${turn}-${tries}` : request, deviceIds, alone }, request));
        };
        const answer = await orNoAnswer(callWithRetry(call, patience(WITHIN_MS)));
        latency.add(time.elapsedMs() - startMs);
        if (answer === null) state.unanswered += 1;
        else if (isSuccess(answer)) note(answer, { key: request, deviceIds, alone }, request);
        else state.refused += 1;
      };
      const kill = async (): Promise<void> => {
        state.faults += 1;
        await rig.nodes[0]?.kill();
        await rig.nodes[0]?.start();
      };
      let killing: Promise<void> | null = null;
      const requests = Array.from({ length: keys }, (_, index) => `key-${index}`);
      await inLanes(requests, LANES, async (request, index) => {
        const racing = Promise.all(Array.from({ length: posts }, (__, turn) => attempt(request, turn)));
        if (index >= keys / 3) killing ??= kill();
        await racing;
      });
      await killing;
      const truth = await readTruth(rig, ids, patience(1_500));
      const made = new Map<string, number>();
      for (const { request, deviceId } of truth) tally(made, `${request} ${deviceId}`);
      return {
        n: keys * posts,
        faults: state.faults,
        violations: {
          "queued-twice": [...made.values()].filter((count) => count > 1).length,
          "never-queued": keys * DEVICES - made.size,
          "answers-differ": [...commandsOf.values()].filter((distinct) => distinct.size > 1).length,
          unanswered: state.unanswered,
          refused: state.refused,
        },
        latencyMs: latency.percentiles(),
        notes: [
          `n counts posts: ${keys} keys, each posted ${posts} times at once on two nodes, every fourth time for one of the ${DEVICES} devices; ms are from a post to its final answer, retries included`,
        ],
      };
    }),
  );

export const sameKeyManyScenarios: readonly Scenario[] = [
  {
    name: "same-key-many",
    promise: "R11",
    claim: "posts with one key for 40 devices and for one of them, on two nodes, across kill -9 of one, make one command per device and give one answer",
    control: { how: "each attempt uses another key", red: "queued-twice" },
    run,
  },
];
