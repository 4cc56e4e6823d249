// The small simulated apps of one agent: a state, a restart counter, and a start that takes a moment.
import { between, type Random } from "./random.ts";
import { pause, type Time } from "./time.ts";

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

/** An app that nobody has named before is taken to be running. */
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
    // A stop in the meantime wins: what was stopped is not brought up again.
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
