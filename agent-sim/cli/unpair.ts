// `mooring-agent unpair`: tells the gateway that this machine leaves, and forgets the identity. The device stays in the console until somebody removes it.
import { rmSync } from "node:fs";
import { createHttp, hasSucceeded, openFileKeys, signer, systemTime as time, toPairedDevice } from "../agent/index.ts";
import { BadOptions } from "../options.ts";
import { type DeviceIdentity, identityPath, readIdentity } from "./identity-file.ts";
import type { Invocation } from "./settings.ts";
import { askAgent } from "./status-socket.ts";

const EVENTS = "/v1/agent/events";
/** What the agent keeps beside its identity: the journal belongs to the device that it was. */
const BESIDE = ["", ".journal", ".keys", ".instance"];

/** Resolves to why the gateway does not know of it; null if it does. */
const tell = async (url: string, path: string, identity: DeviceIdentity): Promise<string | null> => {
  const http = createHttp(url, 1);
  const device = toPairedDevice(identity);
  const body = JSON.stringify({ events: [{ type: "agent.unpaired", severity: "warning", timestamp: new Date(time.wallMs()).toISOString(), details: {} }] });
  const signing = { ...device, secret: openFileKeys(`${path}.keys`, device.secret).secret };
  const headers = signer(2)(signing, { method: "POST", target: EVENTS, body }, new Date(time.wallMs()));
  try {
    const answer = await http.call({ method: "POST", path: EVENTS, body, headers });
    return hasSucceeded(answer) ? null : `it answered ${answer.status}`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    http.close();
  }
};

export const unpair = async ({ resolved: { settings }, uid, flags, print }: Invocation): Promise<number> => {
  const path = identityPath(settings.data);
  const identity = readIdentity(path, uid);
  if (identity === null) throw new BadOptions(`this machine is not paired (${path})`);
  if ((await askAgent(settings.data, "/status")) !== null) throw new BadOptions("the agent runs; stop it first: systemctl stop mooring-agent");
  if (flags["yes"] !== true)
    throw new BadOptions(`this forgets that the machine is ${identity.device_id}, for good; its apps' data stay. If you mean it: mooring-agent unpair --yes`);
  const url = settings.url ?? identity.infrastructure_secrets["API_URL"];
  const problem = url === undefined ? "no gateway is set" : await tell(url, path, identity);
  for (const ending of BESIDE) rmSync(`${path}${ending}`, { force: true });
  if (problem !== null) print(`the gateway does not know of it: ${problem}`);
  print(`this machine is ${identity.device_id} no more; remove the device in the console, or open its repair window there to pair the machine again`);
  return 0;
};
