// The environment of the console's tests: Node's own, and at the worker's end it ends what the worker's files shared.
import type { Environment } from "vitest/runtime";
import { closeWorker, openWorker } from "./worker-end.ts";

const environment: Environment = {
  name: "console",
  viteEnvironment: "ssr",
  setup: (worker) => {
    openWorker(worker);
    return { teardown: closeWorker };
  },
};
export default environment;
