// Suite carrier: what others reach on the device, through streams of HTTP/2 of which the agent is the server.
import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2 } from "node:http2";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import type { KitCase } from "../kit-case.ts";
import type { Stage } from "../stage.ts";

const OPEN_MS = 15_000;
const TUNNEL = "tun_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R";

interface Carriers {
  readonly open: ClientHttp2Session[];
  /** The control stream of each. */
  readonly controls: ClientHttp2Stream[];
}

/** Takes the upgrades of carriers. The first answer may be a proxy's. */
const takeCarriers = (stage: Stage): Carriers => {
  const carriers: Carriers = { open: [], controls: [] };
  stage.gateway.onOtherUpgrade = (call, socket, head) => {
    if (call.path !== "/v1/agent/tunnel") return false;
    if (call.headers.get("upgrade")?.[0] !== "mooring-tunnel.v1") {
      socket.end("HTTP/1.1 404 Kit\r\ncontent-length: 0\r\n\r\n");
      return true;
    }
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: mooring-tunnel.v1\r\n\r\n");
    if (head.length > 0) socket.unshift(head);
    const session = connectHttp2("http://agent", { createConnection: () => socket });
    session.on("error", () => undefined);
    const control = session.request({ ":method": "CONNECT", ":authority": "control" });
    control.on("error", () => undefined);
    carriers.open.push(session);
    carriers.controls.push(control);
    return true;
  };
  return carriers;
};

/** A service that says hello, and gives back what it gets in capitals. */
const startService = async (): Promise<{ readonly server: Server; readonly port: number; readonly sockets: Set<Socket> }> => {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket)).on("error", () => undefined);
    socket.write("hello;");
    socket.on("data", (bytes) => socket.write(bytes.toString().toUpperCase()));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { server, port: (server.address() as AddressInfo).port, sockets };
};

interface Stream {
  readonly stream: ClientHttp2Stream;
  status: number | null;
  reason: string | null;
  text: string;
}
const openStream = (session: ClientHttp2Session, authority: string): Stream => {
  const stream = session.request({ ":method": "CONNECT", ":authority": authority });
  const seen: Stream = { stream, status: null, reason: null, text: "" };
  stream.on("response", (headers) => {
    seen.status = Number(headers[":status"]);
    seen.reason = (headers["mooring-reason"] as string | undefined) ?? null;
  });
  stream.setEncoding("utf8").on("data", (text: string) => {
    seen.text += text;
  });
  stream.on("error", () => undefined);
  return seen;
};

const openTunnel = async (stage: Stage, service: string): Promise<Carriers> => {
  const carriers = takeCarriers(stage);
  stage.gateway.state.desired = { ...stage.gateway.state.desired, version: 1, tunnels: [{ tunnelId: TUNNEL, service }] };
  await stage.open();
  await stage.due("C1.1", "the carrier, since the desired state has a tunnel", () => carriers.open.length > 0, OPEN_MS);
  return carriers;
};

export const carrierCases: readonly KitCase[] = [
  {
    id: "CARRIER-1",
    title: "opens the carrier for a tunnel and connects its streams to the service",
    rules: ["C1.1", "C1.2", "C2.1", "C3.1"],
    seconds: 8,
    run: async (stage) => {
      const { server, port } = await startService();
      try {
        const carriers = await openTunnel(stage, `tcp://127.0.0.1:${port}`);
        const [session] = carriers.open;
        if (session === undefined) return;
        const streams = Array.from({ length: 8 }, () => openStream(session, TUNNEL));
        await stage.due(
          "C3.1",
          "200 on each of eight streams, and the service's first bytes",
          () => streams.every(({ status, text }) => status === 200 && text === "hello;"),
          OPEN_MS,
        );
        for (const [n, { stream }] of streams.entries()) stream.write(`abc${n}`);
        await stage.due("C3.1", "what the service answers, each on its own stream", () => streams.every(({ text }, n) => text === `hello;ABC${n}`), OPEN_MS);
        const reports = () => stage.gateway.state.reports.flatMap(({ tunnels }) => tunnels);
        await stage.due(
          "C1.2",
          "the tunnel as up, in a report",
          () => reports().some((tunnel) => tunnel["tunnelId"] === TUNNEL && tunnel["state"] === "up"),
          70_000,
        );
      } finally {
        server.close();
      }
    },
  },
  {
    id: "CARRIER-2",
    title: "refuses streams that lead nowhere, or where nobody ordered it",
    rules: ["C3.2", "C3.3"],
    seconds: 8,
    run: async (stage) => {
      const { server, port } = await startService();
      try {
        const carriers = await openTunnel(stage, "tcp://127.0.0.1:1");
        const [session] = carriers.open;
        if (session === undefined) return;
        const down = openStream(session, TUNNEL);
        await stage.due(
          "C3.2",
          "502 with mooring-reason refused, for a service that is not there",
          () => down.status === 502 && down.reason === "refused",
          OPEN_MS,
        );
        for (const authority of ["tun_unknown", `127.0.0.1:${port}`, "something-else"]) {
          const unknown = openStream(session, authority);
          await stage.due("C3.3", `404 with mooring-reason unknown, for ${authority}`, () => unknown.status === 404 && unknown.reason === "unknown", OPEN_MS);
        }
      } finally {
        server.close();
      }
    },
  },
  {
    id: "CARRIER-3",
    title: "closes what the control stream aborts, and opens the next carrier when one drains or breaks",
    rules: ["C4.1", "C5.1"],
    seconds: 10,
    run: async (stage) => {
      const { server, port, sockets } = await startService();
      try {
        const carriers = await openTunnel(stage, `tcp://127.0.0.1:${port}`);
        const [first] = carriers.open;
        if (first === undefined) return;
        const [gone, stays] = [openStream(first, TUNNEL), openStream(first, TUNNEL)];
        await stage.due("C3.1", "two streams", () => gone.text === "hello;" && stays.text === "hello;", OPEN_MS);
        carriers.controls[0]?.write(`abort ${gone.stream.id}\nabort 99999\nsomething of tomorrow\n`);
        await stage.due("C4.1", "the end of the aborted stream's connection to the service, and of no other", () => sockets.size === 1, OPEN_MS);
        stays.stream.write("still");
        await stage.due("C4.1", "the other stream as before", () => stays.text === "hello;STILL", OPEN_MS);
        first.goaway();
        await stage.due("C5.1", "another carrier after GOAWAY", () => carriers.open.length > 1, OPEN_MS);
        const next = carriers.open.at(-1);
        next?.destroy();
        await stage.due("C5.1", "another carrier after a break", () => carriers.open.length > 2, OPEN_MS);
        const last = carriers.open.at(-1);
        if (last === undefined) return;
        const again = openStream(last, TUNNEL);
        await stage.due("C3.1", "a stream on the new carrier", () => again.text === "hello;", OPEN_MS);
      } finally {
        server.close();
      }
    },
  },
];
