// An agent's process host that changes one app and is killed before the n-th step. host-crash.test.ts runs it as a process of its own.
import { systemTime as time } from "../../agent-sim/agent/index.ts";
import { openProcessHost } from "../../agent-sim/host/processes/process-host.ts";
import { DesiredApp } from "../../protocol/records/apps/app-spec.ts";
import { PROGRAMS, SECRET } from "../agent-sim/host/harness.ts";

const [folder = "", wanted = "", at = "0"] = process.argv.slice(2);
let step = 0;
const host = openProcessHost({
  folder,
  time,
  programs: PROGRAMS,
  secretsOf: async () => ({ SECRET }),
  supervision: { lookMs: 50, backoffMs: 50 },
  onStep: (name) => {
    step += 1;
    process.stdout.write(`${name}\n`);
    if (step === Number(at)) process.kill(process.pid, "SIGKILL");
  },
});
await host.apply(DesiredApp.parse(JSON.parse(wanted))).catch((error: Error) => process.stdout.write(`failed: ${error.message}\n`));
await host.close();
