// Learns whether upgrades to a WebSocket reach the gateway, without a session: the gateway itself refuses one that is not signed.
import WebSocket from "ws";
import { SUBPROTOCOL } from "../../protocol/index.ts";
import { errorOf, NoAnswer, ownAnswer } from "./answers.ts";
import { proxyTo } from "./proxies.ts";
import { collectRefusal } from "./socket.ts";

/** The gateway's word for a request in which it sees no upgrade. */
const NO_UPGRADE = "PROTOCOL_UNSUPPORTED";

/** Resolves if they do. Rejects with the reason if they do not. */
export const probeUpgrade = (url: string, withinMs: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const socket = new WebSocket(url, [SUBPROTOCOL], { handshakeTimeout: withinMs, followRedirects: false, agent: proxyTo(url) });
    const end = (problem: Error | null): void => {
      if (problem === null) resolve();
      else reject(problem);
      socket.terminate();
    };
    socket.on("unexpected-response", (_request, response) =>
      collectRefusal(response, (text) => {
        const { statusCode: status = 0, headers } = response;
        try {
          const { code } = errorOf(ownAnswer({ status, headers, text: text ?? "" }));
          end(code === NO_UPGRADE ? new NoAnswer("something before the gateway takes the upgrade out of the request") : null);
        } catch (error) {
          end(error instanceof Error ? error : new Error(String(error)));
        }
      }),
    );
    socket.on("open", () => end(new NoAnswer("something that is not the gateway accepts the upgrade")));
    socket.on("error", end);
  });
