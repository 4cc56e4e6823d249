// What a tunnel costs beside other ways to the same service: processor time and speed of large downloads, processor time and latency of small requests, and
// what readers that do not read, or downloads at full speed, cost others.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdirSync, openSync, writeFileSync, writeSync } from "node:fs";
import { type Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { join } from "node:path";
import { createHttp } from "../../../agent-sim/agent/index.ts";
import { median, quantile } from "../arithmetic.ts";
import { createCaller } from "../caller.ts";
import type { MetricId } from "../metrics.ts";
import { treeNs } from "../processor-time.ts";
import type { Finding } from "../report.ts";
import { InvalidRun } from "../rounds.ts";
import type { BenchStage } from "../stage.ts";
import { openTunnel, startForwardedPort, startOrigin, startReverseProxy, type Tunnel, visitorAgent, type Way } from "../ways.ts";

export interface TunnelsPlan {
  readonly rounds: number;
  readonly bytes: number;
  readonly requests: number;
  readonly atOnce: number;
  readonly stalled: number;
  readonly commands: number;
  /** Of the downloads beside which commands are measured. */
  readonly bytesPerSecond: number;
}

const SMALL = "a".repeat(512);
const CHUNK_BYTES = 1_048_576;
const GIB = 2 ** 30;

const writeFiles = (folder: string, bytes: number): void => {
  mkdirSync(folder);
  writeFileSync(join(folder, "small"), SMALL);
  const file = openSync(join(folder, "large"), "w");
  for (let at = 0; at < bytes; at += CHUNK_BYTES) writeSync(file, Buffer.alloc(Math.min(CHUNK_BYTES, bytes - at), at % 251));
  closeSync(file);
};

const nsOf = ({ pids }: Way): number => pids.reduce((sum, pid) => sum + treeNs(pid), 0);

/** curl, which takes little of the machine, so that the way is what is measured. */
const startDownload = ({ scheme, host, port }: Way, more: readonly string[] = []) =>
  spawn("curl", ["-skf", ...more, "-o", "/dev/null", `${scheme}://${host}/large`, "--connect-to", `::127.0.0.1:${port}`], {
    stdio: "ignore",
  });
const download = async (way: Way, bytes: number) => {
  const [startedMs, beforeNs] = [performance.now(), nsOf(way)];
  const [code] = (await once(startDownload(way), "exit")) as [number | null];
  if (code !== 0) throw new InvalidRun(`a download ended with ${code}`);
  return { nsPerGiB: ((nsOf(way) - beforeNs) * GIB) / bytes, bytesPerSecond: (bytes * 1_000) / (performance.now() - startedMs) };
};

const get = async ({ scheme, port, host }: Way, agent: HttpAgent): Promise<number> => {
  const startedMs = performance.now();
  const ask = scheme === "https" ? httpsRequest : httpRequest;
  const options = { host: "127.0.0.1", port, path: "/small", agent, headers: { host }, ...(scheme === "https" ? { servername: host.split(":")[0] } : {}) };
  const request = ask(options).end();
  const [response] = (await once(request, "response")) as [IncomingMessage];
  let length = 0;
  for await (const chunk of response) length += (chunk as Buffer).length;
  if (response.statusCode !== 200 || length !== SMALL.length) throw new InvalidRun(`a request got ${response.statusCode} with ${length} bytes`);
  return performance.now() - startedMs;
};

const visit = async (way: Way, { count, atOnce }: { readonly count: number; readonly atOnce: number }) => {
  const agent = visitorAgent(way);
  const times: number[] = [];
  try {
    for (let warm = 0; warm < atOnce * 4; warm += 1) await get(way, agent);
    const beforeNs = nsOf(way);
    const lane = async (): Promise<void> => {
      for (let left = Math.ceil(count / atOnce); left > 0; left -= 1) times.push(await get(way, agent));
    };
    await Promise.all(Array.from({ length: atOnce }, lane));
    return { p50: quantile(times, 0.5), p99: quantile(times, 0.99), nsEach: (nsOf(way) - beforeNs) / times.length };
  } finally {
    agent.destroy();
  }
};

/** Readers that take the head of an answer and never its body. */
const stall = async (way: Way, count: number): Promise<() => void> => {
  const readers = Array.from({ length: count }, () => {
    const ask = way.scheme === "https" ? httpsRequest : httpRequest;
    return ask({ host: "127.0.0.1", port: way.port, path: "/large", agent: false, headers: { host: way.host } }).end();
  });
  for (const reader of readers) {
    reader.on("error", () => undefined);
    const [response] = (await once(reader, "response")) as [IncomingMessage];
    response.on("error", () => undefined);
    response.pause();
  }
  return () => {
    for (const reader of readers) reader.destroy();
  };
};

const commandTimes = async ({ deviceId, tenant, gatewayUrl }: Tunnel, count: number): Promise<number> => {
  const http = createHttp(gatewayUrl, 2);
  const { post } = createCaller(http, tenant);
  const times: number[] = [];
  try {
    for (let at = 0; at < count; at += 1) {
      const startedMs = performance.now();
      const { status } = await post(`/devices/${deviceId}/commands?wait=30`, { type: "ping", payload: {} });
      if (status !== "succeeded") throw new InvalidRun(`a command is ${String(status)}`);
      times.push(performance.now() - startedMs);
    }
    return quantile(times, 0.99);
  } finally {
    http.close();
  }
};

const besideDownloads = async <T>(way: Way, { bytesPerSecond }: TunnelsPlan, work: () => Promise<T>): Promise<T> => {
  const state = { over: false };
  const downloads = (async (): Promise<void> => {
    while (!state.over) {
      const child = startDownload(way, ["--limit-rate", String(bytesPerSecond)]);
      const ended = once(child, "exit");
      const look = setInterval(() => state.over && child.kill(), 50);
      await ended;
      clearInterval(look);
    }
  })();
  try {
    return await work();
  } finally {
    state.over = true;
    await downloads;
  }
};

type Figures = Partial<Record<MetricId, number>>;

const measure = async (
  {
    direct,
    tunnel,
    secure,
    proxy,
    forwarded,
  }: Readonly<Record<"direct" | "proxy", Way>> & Readonly<Record<"tunnel" | "secure", Tunnel>> & { readonly forwarded: Way | null },
  plan: TunnelsPlan,
): Promise<{ readonly figures: Figures; readonly note: string }> => {
  const { bytes, requests, atOnce, stalled, commands } = plan;
  const ours = await download(tunnel, bytes);
  const encrypted = await download(secure, bytes);
  const theirs = await download(proxy, bytes);
  const ssh = forwarded === null ? null : await download(forwarded, bytes);
  const small = await visit(tunnel, { count: requests, atOnce });
  const smallOfProxy = await visit(proxy, { count: requests, atOnce });
  const alone = await visit(tunnel, { count: requests, atOnce: 1 });
  const straight = await visit(direct, { count: requests, atOnce: 1 });
  const release = await stall(tunnel, stalled);
  const beside = await visit(tunnel, { count: requests, atOnce: 1 });
  release();
  const quiet = await commandTimes(tunnel, commands);
  const loud = await besideDownloads(tunnel, plan, () => commandTimes(tunnel, commands));
  const seconds = (ns: number): string => (ns / 1e9).toFixed(1);
  return {
    figures: {
      ...(ssh === null ? {} : { "tunnel-cpu": ours.nsPerGiB / ssh.nsPerGiB, "tunnel-cpu-tls": encrypted.nsPerGiB / ssh.nsPerGiB }),
      "tunnel-throughput": ours.bytesPerSecond / theirs.bytesPerSecond,
      "tunnel-request-cpu": small.nsEach / smallOfProxy.nsEach,
      "tunnel-latency": alone.p50 - straight.p50,
      "tunnel-stalled": beside.p99 / alone.p99,
      "tunnel-commands": loud / quiet,
    },
    note: `a GiB: tunnel ${seconds(ours.nsPerGiB)} s, with TLS ${seconds(encrypted.nsPerGiB)} s, ssh ${ssh === null ? "-" : seconds(ssh.nsPerGiB)} s of processor time; ${Math.round(ours.bytesPerSecond / 1e6)} and nginx ${Math.round(theirs.bytesPerSecond / 1e6)} MB/s; a request ${Math.round(small.nsEach / 1e3)} and ${Math.round(smallOfProxy.nsEach / 1e3)} us; p99 alone ${alone.p99.toFixed(2)}, beside ${beside.p99.toFixed(2)} ms; commands ${quiet.toFixed(1)}, ${loud.toFixed(1)} ms`,
  };
};

const IDS: readonly MetricId[] = [
  ...(["tunnel-cpu", "tunnel-cpu-tls", "tunnel-throughput", "tunnel-request-cpu"] as const),
  ...(["tunnel-latency", "tunnel-stalled", "tunnel-commands"] as const),
];

export const tunnels = (stage: BenchStage, plan: TunnelsPlan): Promise<readonly Finding[]> =>
  stage.scope(async (scope) => {
    const folder = join(scope.folder, "files");
    writeFiles(folder, plan.bytes);
    const direct = await startOrigin(scope, folder);
    const ways = {
      direct,
      proxy: await startReverseProxy(scope, direct),
      forwarded: await startForwardedPort(scope, direct),
      tunnel: await openTunnel(scope, direct, { tls: false }),
      secure: await openTunnel(scope, direct, { tls: true }),
    };
    const rounds: Awaited<ReturnType<typeof measure>>[] = [];
    for (let round = 0; round < plan.rounds; round += 1) {
      const measured = await measure(ways, plan);
      process.stderr.write(`  ${measured.note}\n`);
      rounds.push(measured);
    }
    return IDS.map((id): Finding => {
      const values = rounds.flatMap(({ figures }) => figures[id] ?? []);
      const none =
        values.length === 0
          ? { note: "not measured: apt-get install openssh-server" }
          : { span: [Math.min(...values), Math.max(...values)] as const, rounds: values };
      return { id, value: values.length === 0 ? null : median(values), ...none };
    });
  });
