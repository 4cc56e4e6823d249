import { createMooring, isMooringError, type LiveEvent, type Mooring } from "@mooring/client";

/** `url` is "" for a page on the gateway's own origin. `token` is asked before every request, so it may refresh. */
export const connect = (url: string, token: () => Promise<string>): Mooring => createMooring({ url, token });

export const restartApp = async (mooring: Mooring, deviceId: string, appId: string): Promise<string> => {
  try {
    return (await mooring.commands.queue.mutate({ deviceId, type: "restart-app", payload: { appId } })).status;
  } catch (error) {
    if (isMooringError(error) && error.data?.app.code === "DEVICE_NOT_FOUND") return "gone";
    throw error;
  }
};

export const watch = (mooring: Mooring, show: (event: LiveEvent) => void, readListsAgain: () => void) =>
  mooring.live.watch.subscribe({ types: ["device.*", "command.*"] }, { onData: ({ data }) => (data.type === "stream.gap" ? readListsAgain() : show(data)) });
