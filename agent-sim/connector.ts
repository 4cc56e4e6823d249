// `npm run connector`: serves one tunnel with its token, without a paired device.
import { once } from "node:events";
import { parseArgs } from "node:util";
import { CARRIER_PATH } from "../protocol/channel/carrier.ts";
import { createCarrier, systemTime as time } from "./agent/index.ts";
import { connectToService } from "./host/services.ts";
import { createAgentLog } from "./log.ts";
import { BadOptions } from "./options.ts";

export const CONNECTOR_HELP = `Serves one tunnel with its token, without a paired device. Several connectors of a tunnel take turns.

  npm run connector -- --token TOKEN --service URL [--edge URL]

  --token TOKEN   the tunnel's token, of GET /v1/tunnels/{tunnelId}/credentials (or in the environment: MOORING_TUNNEL_TOKEN)
  --service URL   what visitors reach, on this machine, as http://127.0.0.1:3000
  --edge URL      the edge (default: http://127.0.0.1:8082)
`;

const DEFAULT_EDGE = "http://127.0.0.1:8082";
const TOKEN = /^mtt_[\w-]{20,100}$/;

const say = createAgentLog("text", time);

/** Runs until a signal ends it. */
export const runConnector = async (args: readonly string[]): Promise<number> => {
  const { values } = parseArgs({
    args: [...args],
    options: { token: { type: "string" }, service: { type: "string" }, edge: { type: "string", default: DEFAULT_EDGE }, help: { type: "boolean", short: "h" } },
  });
  const { service, edge } = values;
  const token = values.token ?? process.env["MOORING_TUNNEL_TOKEN"];
  if (values.help === true || token === undefined || service === undefined) {
    process.stdout.write(CONNECTOR_HELP);
    return values.help === true ? 0 : 2;
  }
  if (!TOKEN.test(token)) throw new BadOptions("--token: is no token of a tunnel");
  if (!URL.canParse(edge)) throw new BadOptions("--edge: is no URL");
  const carrier = createCarrier({
    url: () => `${edge.replace(/\/+$/, "")}${CARRIER_PATH}`,
    headers: () => ({ authorization: `Bearer ${token}` }),
    // The token is good for one tunnel, so every stream means this service.
    dial: () => connectToService(service),
    time,
    random: Math.random,
    on: { open: () => say(`serves ${service}`), down: (why) => say(`not connected: ${why}`) },
  });
  carrier.start();
  const ending = new AbortController();
  for (const event of ["SIGINT", "SIGTERM"]) process.once(event, () => ending.abort());
  await once(ending.signal, "abort");
  carrier.stop();
  return 0;
};
