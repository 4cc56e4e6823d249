// The desired state that was read last. A command may be overtaken by it on its way, and then brings its app to what is wanted now.
import type { DesiredApp } from "../../protocol/records/apps/app-spec.ts";

const isNamed = (app: unknown, appId: string): boolean => typeof app === "object" && app !== null && "appId" in app && app.appId === appId;

export const createReadState = () => {
  let state: { readonly version: number; readonly apps: readonly unknown[] } = { version: 0, apps: [] };
  return {
    set: (version: number, apps: readonly unknown[]): void => {
      state = { version, apps };
    },
    /** The app as it should be, if that is newer than this version; null if it is not, or if the state does not name the app. */
    newerThan: (version: number, appId: string): DesiredApp | null =>
      state.version <= version ? null : ((state.apps.find((app) => isNamed(app, appId)) as DesiredApp | undefined) ?? null), // as: the host parses it
  };
};
