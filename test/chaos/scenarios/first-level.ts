// Agents of the first protocol level: they journal, take one command at a time and list nothing after a reconnect.
import type { AgentOptions } from "../../../agent-sim/agent/index.ts";
import { createRig } from "../rig/rig.ts";
import { withSql } from "../rig/sql.ts";
import { asking, type Scenario } from "../scenario.ts";
import type { TrialStage } from "../trial.ts";
import { throughProxy } from "./agents.ts";

const CUT_SHARE = 0.4;
const CUT_EVERY_MS = 700;
/** Long enough for a cut in the middle, short enough for one command at a time to keep up with the load. */
const WORK_SECONDS = 0.3;

/** Keeps its commands but lists none of them. */
const silent = (journal: AgentOptions["journal"]): AgentOptions["journal"] => ({ ...journal, unsettled: () => [] });

const firstLevel: Scenario = {
  name: "first-level",
  promise: "R7, R8",
  claim: "agents that announce only a journal and lose their connection while they work: no command counts as lost, each ends once",
  control: { how: "the agents announce that they list their commands but list none, so T25 takes them all for lost", red: "called-lost" },
  run: async ({ seed, scale, control }) => {
    const rig = await createRig({ nodes: 2, seed });
    try {
      const proxy = await rig.openProxy();
      const long = { ...rig, portal: asking(rig.portal, (command) => ({ ...command, type: "wait", requiresAck: true, payload: { seconds: WORK_SECONDS } })) };
      const trouble = async ({ running, fault, wait }: TrialStage): Promise<void> => {
        await wait(1_000);
        while (running()) {
          fault(`${proxy.reset(CUT_SHARE)} connections cut`);
          await wait(CUT_EVERY_MS);
        }
      };
      const capabilities = control ? ["journal.v1", "inflight.v1"] : ["journal.v1"];
      const outcome = await throughProxy(long, proxy, {
        seed,
        scale,
        impatient: control,
        trouble,
        uses: () => true,
        tune: (_, base) => ({ ...base, capabilities, maxInFlight: 1, journal: silent(base.journal) }),
      });
      const [row] = await withSql(rig.postgres, (sql) =>
        sql.query<{ count: string }>(
          "select count(distinct command_id) as count from commands_now cross join lateral json_array_elements(history) as step where step->>'code' = 'AGENT_LOST_STATE'",
        ),
      );
      return { ...outcome, violations: { ...outcome.violations, "called-lost": Number(row?.count ?? 0) } };
    } finally {
      await rig.close();
    }
  },
};

export const firstLevelScenarios: readonly Scenario[] = [firstLevel];
