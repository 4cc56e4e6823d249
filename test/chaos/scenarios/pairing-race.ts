// A pairing code under pressure: many activate it at once on two nodes, and many guess its token.
import { randomUUID } from "node:crypto";
import { z } from "zod";
import { callWithRetry, errorOf, type Http, type HttpAnswer, systemTime as time } from "../../../agent-sim/agent/index.ts";
import type { Bootstrapped } from "../../../agent-sim/bootstrap.ts";
import { createLatency } from "../../../agent-sim/fleet/latency.ts";
import { headersOf, inLanes, isSuccess, orNoAnswer, patience, withClients } from "../rig/calls.ts";
import { withRig } from "../rig/rig.ts";
import { meddle, withSql } from "../rig/sql.ts";
import type { Context, Scenario, ScenarioOutcome } from "../scenario.ts";

/** This many wrong tokens end a code. */
const GUESSES = 5;
const EMAIL = "owner@example.com";
const WITHIN_MS = 20_000;
const PAGE = 100;

const Code = z.object({ data: z.object({ pairing_code: z.string() }) });
const Token = z.object({ data: z.object({ activation_token: z.string() }) });
const Devices = z.object({ data: z.array(z.object({ deviceId: z.string() })) });

interface Prepared {
  readonly code: string;
  readonly token: string;
}

const post = async (http: Http, path: string, body: object, headers: Readonly<Record<string, string>> = {}): Promise<HttpAnswer> => {
  const answer = await callWithRetry(() => http.call({ method: "POST", path, headers, body: JSON.stringify(body) }), patience(WITHIN_MS));
  if (!isSuccess(answer)) throw new Error(`${path} was refused: ${answer.status} ${errorOf(answer).code}`);
  return answer;
};
const prepare = async (http: Http, { tenantId, token }: Bootstrapped): Promise<Prepared> => {
  const initiated = await post(http, "/v1/pairing/initiate", { device_fingerprint: `race-${randomUUID()}` });
  const code = Code.parse(initiated.body).data.pairing_code;
  const prepared = await post(http, "/v1/pairing/prepare-activation", { pairing_code: code, tenant_id: tenantId }, { authorization: `Bearer ${token}` });
  return { code, token: Token.parse(prepared.body).data.activation_token };
};
const activate = (http: Http, { code, token }: Prepared): Promise<HttpAnswer | null> =>
  orNoAnswer(
    http.call({
      method: "POST",
      path: "/v1/pairing/activate",
      body: JSON.stringify({ pairing_code: code, activation_token: token, user_email: EMAIL }),
    }),
  );

const countDevices = async (http: Http, tenant: Bootstrapped): Promise<number> => {
  for (let page = 1, seen = 0; ; page += 1) {
    const path = `/v1/devices?page=${page}&pageSize=${PAGE}`;
    const answer = await callWithRetry(() => http.call({ method: "GET", path, headers: headersOf(tenant) }), patience(WITHIN_MS));
    const { length } = Devices.parse(answer.body).data;
    seen += length;
    if (length < PAGE) return seen;
  }
};

const run = ({ seed, scale, control }: Context): Promise<ScenarioOutcome> =>
  withRig({ nodes: 2, seed }, (rig) =>
    withClients(rig.nodes, async (clients) => {
      if (control)
        await withSql(rig.postgres, (sql) =>
          meddle(
            sql,
            "pairings",
            "update",
            // The new device alone would refuse the next racer, so the approval covers its replacement too.
            "if new.status = 'activated' then new.status := 'pending'; new.activation_token_hash := old.activation_token_hash; new.replaces_device_id := new.device_id; end if;",
          ),
        );
      const [codes, racers] = scale.agents > 50 ? [100, 100] : [4, 12];
      const tenant = await rig.tenant();
      const client = (index: number): Http => clients[index % clients.length] as Http;
      const latency = createLatency();
      const state = { twice: 0, never: 0, unanswered: 0, guessed: 0, unlocked: 0 };
      const race = async (index: number): Promise<void> => {
        const prepared = await prepare(client(index), tenant);
        const answers = await Promise.all(
          Array.from({ length: racers }, async (_, racer) => {
            const startMs = time.elapsedMs();
            const answer = await activate(client(racer), prepared);
            latency.add(time.elapsedMs() - startMs);
            return answer;
          }),
        );
        const won = answers.filter((answer) => answer !== null && isSuccess(answer)).length;
        if (won > 1) state.twice += 1;
        if (won === 0) state.never += 1;
        state.unanswered += answers.filter((answer) => answer === null || answer.status >= 500).length;
      };
      const guess = async (index: number): Promise<void> => {
        const prepared = await prepare(client(index), tenant);
        const guesses = await Promise.all(Array.from({ length: racers }, (_, racer) => activate(client(racer), { ...prepared, token: randomUUID() })));
        const judged = guesses.filter((answer) => answer !== null && errorOf(answer).code === "ACTIVATION_TOKEN_INVALID").length;
        state.guessed = Math.max(state.guessed, judged);
        const right = await activate(client(index), prepared);
        if (right !== null && isSuccess(right)) state.unlocked += 1;
      };
      const indices = Array.from({ length: codes }, (_, index) => index);
      await inLanes(indices, 2, race);
      const devices = await countDevices(clients[0] as Http, tenant);
      await inLanes(indices, 2, guess);
      return {
        n: codes * racers,
        faults: 0,
        violations: {
          "activated-twice": state.twice,
          "never-activated": state.never,
          "devices-too-many": Math.max(0, devices - codes),
          "guesses-over": Math.max(0, state.guessed - GUESSES),
          "guessed-and-open": state.unlocked,
          unanswered: state.unanswered,
        },
        latencyMs: latency.percentiles(),
        notes: [
          `n counts activations: ${codes} codes, each activated ${racers} times at once on two nodes; ms are of single activations`,
          `${racers} wrong tokens each were sent for ${codes} more codes: at most ${state.guessed} were compared before the code ended; a token has 256 bits`,
        ],
      };
    }),
  );

export const pairingRaceScenarios: readonly Scenario[] = [
  {
    name: "pairing-race",
    promise: "S12",
    claim: `a pairing code that many activate at once on two nodes becomes one device; after ${GUESSES} wrong tokens it refuses the right one too`,
    control: { how: "a database trigger keeps an activated code alive and lets its approval replace the new device", red: "activated-twice" },
    run,
  },
];
