// The commands about apps: each names an app as it should be, and the host brings it there.
import { z } from "zod";
import { AppId } from "../../protocol/kit/ids.ts";
import type { DesiredApp, ReportedApp } from "../../protocol/records/apps/app-spec.ts";
import { type CommandHandler, type CommandHandlers, HandlerFailure, InvalidPayload, noop } from "../agent/index.ts";
import { type Host, HostClosed, HostFailure } from "./host.ts";

/** The host checks the rest, so that what it refuses is on the app's record with a reason. */
const Order = z.object({
  app: z.looseObject({ appId: AppId, revision: z.int().min(1) }),
  desiredVersion: z.int().min(0).default(0),
});

export interface HostHandlerOptions {
  readonly host: Host;
  /** An order of this version of the desired state is being carried out. */
  readonly onVersion: (version: number) => void;
  /** The app in a desired state that was read and is newer than this version; null if none is, or if it does not name the app. */
  readonly newerThan: (version: number, appId: string) => DesiredApp | null;
}

type Act = (desired: DesiredApp) => Promise<ReportedApp>;

const carryingOut = ({ host, onVersion, newerThan }: HostHandlerOptions, act: Act): CommandHandler => ({
  long: true,
  cancelable: false,
  // The order says what should be, not what to do.
  repeatable: true,
  run: async (payload) => {
    const order = Order.safeParse(payload);
    if (!order.success) throw new InvalidPayload(z.prettifyError(order.error).slice(0, 500));
    const { app, desiredVersion } = order.data;
    onVersion(desiredVersion);
    try {
      // An order that was overtaken on its way brings the app to what is wanted now.
      return { app: await act(newerThan(desiredVersion, app.appId) ?? (app as unknown as DesiredApp)) }; // as: the host parses it
    } catch (error) {
      // The command stays unfinished, so that the next start carries it on.
      if (error instanceof HostClosed) return new Promise<never>(noop);
      if (!(error instanceof HostFailure)) throw error;
      throw new HandlerFailure(error.reason, { app: host.report().find(({ appId }) => appId === app.appId) ?? null });
    }
  },
});

export const createHostHandlers = (options: HostHandlerOptions): CommandHandlers => {
  const { host } = options;
  const apply = carryingOut(options, host.apply);
  return {
    "app.deploy": apply,
    "app.start": apply,
    "app.stop": apply,
    "app.remove": apply,
    "app.restart": carryingOut(options, host.restart),
  };
};
