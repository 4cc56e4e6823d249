// One idempotency key in many concurrent posts: on two nodes, across the death of one, and under two tenants.
import { z } from "zod";
import { callWithRetry, errorOf, type Http, type HttpAnswer, systemTime as time } from "../../../agent-sim/agent/index.ts";
import { createLatency } from "../../../agent-sim/fleet/latency.ts";
import { readTruth } from "../check/truth.ts";
import { headersOf, inLanes, isSuccess, orNoAnswer, patience, withClients } from "../rig/calls.ts";
import { withRig } from "../rig/rig.ts";
import type { Context, Scenario, ScenarioOutcome } from "../scenario.ts";

const DEVICES = 10;
const LANES = 6;
const WITHIN_MS = 60_000;
const Answered = z.object({ data: z.object({ commandId: z.string(), issuedAt: z.string() }) });

const post = (deviceId: string, key: string, credentials: Parameters<typeof headersOf>[0], text = "same") => ({
  method: "POST" as const,
  path: `/v1/devices/${deviceId}/commands`,
  headers: { ...headersOf(credentials), "idempotency-key": key },
  body: JSON.stringify({ type: "echo", payload: { request: key, text } }),
});
const commandOf = (answer: HttpAnswer): string => Answered.parse(answer.body).data.commandId;

const repeat = async ({ seed, scale, control }: Context): Promise<ScenarioOutcome> =>
  withRig({ nodes: 2, seed }, (rig) =>
    withClients(rig.nodes, async (clients) => {
      // No agent is connected, so only the posts change commands.
      const devices = await rig.provision(DEVICES);
      const [keys, posts] = scale.agents > 50 ? [200, 50] : [24, 10];
      const answers = new Map<string, Set<string>>();
      const latency = createLatency();
      const state = { unanswered: 0, refused: 0, replayed: 0, faults: 0, otherBody: 0 };
      const deviceOf = (index: number): string => devices[index % devices.length]?.deviceId ?? "";
      const attempt = async (index: number, turn: number): Promise<void> => {
        const key = `key-${index}`;
        const startMs = time.elapsedMs();
        let tries = turn;
        const call = (): Promise<HttpAnswer> => {
          const client = clients[tries++ % clients.length] as Http;
          return client.call(post(deviceOf(index), control ? `${key}-${tries}` : key, rig.credentials, key));
        };
        const answer = await orNoAnswer(callWithRetry(call, patience(WITHIN_MS)));
        latency.add(time.elapsedMs() - startMs);
        if (answer === null) state.unanswered += 1;
        else if (!isSuccess(answer)) state.refused += 1;
        else {
          if (answer.headers["idempotent-replayed"] === "true") state.replayed += 1;
          answers.set(key, (answers.get(key) ?? new Set()).add(JSON.stringify(Answered.parse(answer.body))));
        }
      };
      const indices = Array.from({ length: keys }, (_, index) => index);
      let begun = 0;
      const kill = async (): Promise<void> => {
        const [node] = rig.nodes;
        state.faults += 1;
        await node?.kill();
        await node?.start();
      };
      let killing: Promise<void> | null = null;
      await inLanes(indices, LANES, async (index) => {
        begun += 1;
        const racing = Promise.all(Array.from({ length: posts }, (_, turn) => attempt(index, turn)));
        if (begun === Math.ceil(keys / 3) || (killing === null && begun > keys / 3)) killing = kill();
        await racing;
      });
      await killing;
      await inLanes(indices, LANES, async (index) => {
        const key = control ? `key-${index}-1` : `key-${index}`;
        const other = await callWithRetry(() => (clients[1] as Http).call(post(deviceOf(index), key, rig.credentials, "another body")), patience(WITHIN_MS));
        if (other.status !== 422 || errorOf(other).code !== "IDEMPOTENCY_KEY_REUSED") state.otherBody += 1;
      });
      const truth = await readTruth(
        rig,
        devices.map(({ deviceId }) => deviceId),
        patience(1_500),
      );
      const made = new Map<string, number>();
      for (const { request } of truth) {
        const key = (request ?? "").split("-").slice(0, 2).join("-");
        made.set(key, (made.get(key) ?? 0) + 1);
      }
      return {
        n: keys * posts,
        faults: state.faults,
        violations: {
          "queued-twice": [...made.values()].filter((count) => count > 1).length,
          "never-queued": keys - made.size,
          "answers-differ": [...answers.values()].filter((distinct) => distinct.size > 1).length,
          "other-body-taken": state.otherBody,
          unanswered: state.unanswered,
          refused: state.refused,
        },
        latencyMs: latency.percentiles(),
        notes: [
          `n counts posts: ${keys} keys, each posted ${posts} times at once on two nodes; ms are from a post to its final answer, retries included`,
          `${state.replayed} answers were replays; ${keys} posts of another body under a known key`,
        ],
      };
    }),
  );

const sameKey: Scenario = {
  name: "same-key",
  promise: "R11",
  claim: "many posts with one key on two nodes, across kill -9 of one, make one command and get one answer; another body gets 422",
  control: { how: "each attempt uses another key", red: "queued-twice" },
  run: repeat,
};

const twoTenants: Scenario = {
  name: "same-key-two-tenants",
  promise: "R12",
  claim: "two tenants that use the same keys at once get their own commands, and neither sees the other's answer",
  control: { how: "both tenants' posts carry the credentials of one", red: "cross-hit" },
  run: ({ seed, scale, control }) =>
    withRig({ nodes: 1, seed }, (rig) =>
      withClients(rig.nodes, async ([client]) => {
        const [mine] = await rig.provision(1);
        const other = await rig.tenant();
        const http = client as Http;
        const provisioned = await callWithRetry(
          () => http.call({ method: "POST", path: "/v1/devices/provision", headers: headersOf(other), body: JSON.stringify({ count: 1 }) }),
          patience(WITHIN_MS),
        );
        const theirs = z.object({ data: z.array(z.object({ device_id: z.string() })) }).parse(provisioned.body).data[0]?.device_id ?? "";
        const keys = scale.agents > 50 ? 500 : 40;
        const latency = createLatency();
        const state = { crossHit: 0, refused: 0 };
        await inLanes(
          Array.from({ length: keys }, (_, index) => `key-${index}`),
          LANES,
          async (key) => {
            const startMs = time.elapsedMs();
            const own = mine?.deviceId ?? "";
            const pair = await Promise.all([
              callWithRetry(() => http.call(post(own, key, rig.credentials)), patience(WITHIN_MS)),
              callWithRetry(() => http.call(control ? post(own, key, rig.credentials) : post(theirs, key, other)), patience(WITHIN_MS)),
            ]);
            latency.add(time.elapsedMs() - startMs);
            if (!pair.every(isSuccess)) state.refused += 1;
            else if (new Set(pair.map(commandOf)).size < 2 || pair.some(({ headers }) => headers["idempotent-replayed"] === "true")) state.crossHit += 1;
          },
        );
        return {
          n: keys,
          faults: 0,
          violations: { "cross-hit": state.crossHit, refused: state.refused },
          latencyMs: latency.percentiles(),
          notes: ["n counts keys, each used by two tenants at once; ms are for both posts"],
        };
      }),
    ),
};

export const sameKeyScenarios: readonly Scenario[] = [sameKey, twoTenants];
