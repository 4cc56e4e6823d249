// Agents of the first level: they remember what they did, take one command at a time and list nothing when they come back.
import type { AgentOptions } from "../../agent-sim/agent/index.ts";
import { throughDoor } from "./agents.ts";
import { createRig } from "./rig.ts";
import { asking, type Scenario } from "./scenario.ts";
import { withSql } from "./sql.ts";
import type { Stage } from "./trial.ts";

const CUT_SHARE = 0.4;
const CUT_EVERY_MS = 700;
/** Long enough to be cut in the middle of it, short enough for one at a time to keep up with the load. */
const WORK_SECONDS = 0.3;

/** It holds what it holds and tells nobody. */
const silent = (journal: AgentOptions["journal"]): AgentOptions["journal"] => ({ ...journal, unsettled: () => [] });

const firstLevel: Scenario = {
  name: "first-level",
  promise: "R7, R8",
  claim: "agents that announce nothing but a journal lose their connections in the middle of their work: nothing is called lost, everything ends once",
  control: { how: "they announce that they list what they hold, and list nothing: T25 takes all of it for lost", red: "called-lost" },
  run: async ({ seed, scale, control }) => {
    const rig = await createRig({ nodes: 2, seed });
    try {
      const door = await rig.door();
      const long = { ...rig, portal: asking(rig.portal, (command) => ({ ...command, type: "wait", requiresAck: true, payload: { seconds: WORK_SECONDS } })) };
      const trouble = async ({ running, fault, wait }: Stage): Promise<void> => {
        await wait(1_000);
        while (running()) {
          fault(`${door.reset(CUT_SHARE)} connections cut`);
          await wait(CUT_EVERY_MS);
        }
      };
      const capabilities = control ? ["journal.v1", "inflight.v1"] : ["journal.v1"];
      const outcome = await throughDoor(long, door, {
        seed,
        scale,
        impatient: control,
        trouble,
        uses: () => true,
        tune: (_, base) => ({ ...base, capabilities, maxInFlight: 1, journal: silent(base.journal) }),
      });
      const [row] = await withSql(rig.postgres, (sql) =>
        sql.query<{ count: string }>("select count(distinct command_id) as count from command_events where code = 'AGENT_LOST_STATE'"),
      );
      return { ...outcome, violations: { ...outcome.violations, "called-lost": Number(row?.count ?? 0) } };
    } finally {
      await rig.close();
    }
  },
};

export const firstLevelScenarios: readonly Scenario[] = [firstLevel];
