// Checks before an app starts that its ports are free on this machine.
import { createSocket } from "node:dgram";
import { createServer } from "node:net";
import type { DesiredApp } from "../../../protocol/records/apps/app-spec.ts";
import { HostFailure, portsOf } from "../host.ts";

type Protocol = DesiredApp["spec"]["ports"][number]["protocol"];

/** Resolves to the code of the system's refusal, or to null if the port can be had. */
const tryPort = (port: number, protocol: Protocol): Promise<string | null> =>
  new Promise((resolve) => {
    const failed = (error: Error): void => resolve("code" in error ? String(error.code) : error.message);
    if (protocol === "udp") {
      const socket = createSocket("udp4");
      socket.once("error", failed).bind({ port, exclusive: true }, () => socket.close(() => resolve(null)));
    } else {
      const server = createServer();
      server.once("error", failed).listen({ port, exclusive: true }, () => server.close(() => resolve(null)));
    }
  });

const REASONS: ReadonlyMap<string | null, string> = new Map([
  ["EADDRINUSE", "PORT_TAKEN"],
  ["EACCES", "PORT_NOT_ALLOWED"],
]);

/** Rejects if a process holds one of the app's ports. Those in `own` are held by the app itself, until it is stopped. */
export const checkPorts = async (app: DesiredApp, own: ReadonlySet<number>): Promise<void> => {
  const numbers = portsOf(app);
  for (const { name, protocol } of app.spec.ports) {
    const port = numbers[name] ?? 0;
    const code = own.has(port) ? null : await tryPort(port, protocol);
    if (code === null) continue;
    const reason = REASONS.get(code) ?? `SYSTEM_${code}`;
    throw new HostFailure({ stage: "preparing", reason, message: `port ${port} (${name}) cannot be used on this device: ${code}` });
  }
};
