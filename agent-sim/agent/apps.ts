// Simulated apps of one agent: each has a state and a restart counter, and takes a moment to start.
import { between, type Random } from "./timing/random.ts";
import { pause, type Time } from "./timing/time.ts";

export interface AppState {
  readonly appId: string;
  readonly state: "stopped" | "starting" | "running";
  readonly restarts: number;
}

export interface Apps {
  start(appId: string): Promise<AppState>;
  stop(appId: string): AppState;
  restart(appId: string): Promise<AppState>;
  state(appId: string): AppState;
}

const START_MS = { least: 5, most: 50 };

/** An unknown app counts as running. */
export const createApps = ({ time, random }: { readonly time: Time; readonly random: Random }): Apps => {
  const apps = new Map<string, AppState>();
  const state = (appId: string): AppState => apps.get(appId) ?? { appId, state: "running", restarts: 0 };
  const put = (next: AppState): AppState => {
    apps.set(next.appId, next);
    return next;
  };
  const boot = async (from: AppState): Promise<AppState> => {
    put({ ...from, state: "starting" });
    await pause(time, between(random, START_MS.least, START_MS.most));
    // If the app was stopped meanwhile, it stays stopped.
    return state(from.appId).state === "starting" ? put({ ...from, state: "running" }) : state(from.appId);
  };
  return {
    state,
    start: async (appId) => (state(appId).state === "running" ? put(state(appId)) : boot(state(appId))),
    stop: (appId) => put({ ...state(appId), state: "stopped" }),
    restart: async (appId) => {
      const from = state(appId);
      return boot({ ...from, restarts: from.restarts + 1 });
    },
  };
};
