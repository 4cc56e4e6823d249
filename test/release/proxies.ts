// Real proxies in front of a gateway: nginx, HAProxy and Caddy with their configurations from docs/deploy/, on free ports.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { connect as dial } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "../flows/processes.ts";
import { eventually } from "../kit/checks/eventually.ts";
import type { Issued } from "../kit/net/certificates.ts";
import { freePort } from "../kit/net/free-port.ts";
import { folderPrefix } from "../kit/setup/run-mark.ts";

export const KINDS = ["nginx-plain.conf", "nginx.conf", "haproxy-plain.cfg", "haproxy.cfg", "Caddyfile"] as const;
export type Kind = (typeof KINDS)[number];
export const isSecure = (kind: Kind): boolean => !kind.includes("plain");

export interface Behind {
  readonly port: number;
  readonly internalPort: number;
  /** The certificate for a proxy that terminates TLS. */
  readonly issued: Issued;
}

interface Place extends Behind {
  readonly dir: string;
  readonly at: number;
}

/** Replaces what an operator would edit; each text must be present. */
const replaced = (text: string, pairs: readonly (readonly [from: string | RegExp, to: string])[]): string =>
  pairs.reduce((done, [from, to]) => {
    const next = done.replace(from, to);
    if (next === done) throw new Error(`the configuration no longer contains ${String(from)}`);
    return next;
  }, text);

/** Wraps a conf.d file in a minimal nginx configuration that writes only into the folder. */
const nginx = (own: string, { dir }: Place): string =>
  [
    `daemon off; master_process off; pid ${dir}/pid; error_log stderr warn; ${process.getuid?.() === 0 ? "user root;" : ""}`,
    "events {}",
    `http { access_log off; ${["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${dir}/${name};`).join(" ")}`,
    own,
    "}",
  ].join("\n");

const toNode = ({ port, internalPort }: Place) =>
  ["server node1 127.0.0.1:8080 check port 8081", `server node1 127.0.0.1:${port} check port ${internalPort}`] as const;
const withStats = (own: string, { dir }: Place): string => {
  const socket = `  stats socket ${dir}/stats mode 600`;
  return /^global$/m.test(own) ? own.replace(/^global$/m, `global\n${socket}`) : `global\n${socket}\n${own}`;
};

const WRITTEN: Record<Kind, (own: string, place: Place) => string> = {
  "nginx-plain.conf": (own, place) =>
    nginx(
      replaced(own, [
        ["listen 8000", `listen 127.0.0.1:${place.at}`],
        ["127.0.0.1:8080", `127.0.0.1:${place.port}`],
      ]),
      place,
    ),
  "nginx.conf": (own, place) =>
    nginx(
      replaced(own, [
        ["listen 443 ssl", `listen 127.0.0.1:${place.at} ssl`],
        ["127.0.0.1:8080", `127.0.0.1:${place.port}`],
        ["/etc/ssl/mooring/cert.pem", place.issued.certFile],
        ["/etc/ssl/mooring/key.pem", place.issued.keyFile],
      ]),
      place,
    ),
  "haproxy-plain.cfg": (own, place) => withStats(replaced(own, [["bind :8000", `bind 127.0.0.1:${place.at}`], toNode(place)]), place),
  "haproxy.cfg": (own, place) =>
    withStats(
      replaced(own, [["bind :443 ssl crt /etc/haproxy/certs/mooring.pem", `bind 127.0.0.1:${place.at} ssl crt ${place.dir}/both.pem`], toNode(place)]),
      place,
    ),
  Caddyfile: (own, place) =>
    `{\n admin off\n auto_https off\n}\n${replaced(own, [
      ["mooring.example.com {", `https://127.0.0.1:${place.at} {\n\ttls ${place.issued.certFile} ${place.issued.keyFile}`],
      ["127.0.0.1:8080", `127.0.0.1:${place.port}`],
      ["health_port 8081", `health_port ${place.internalPort}`],
    ])}`,
};

const command = (kind: Kind, dir: string, file: string): readonly string[] => {
  if (kind.startsWith("nginx")) return ["nginx", "-p", dir, "-e", "stderr", "-c", file];
  if (kind.startsWith("haproxy")) return ["haproxy", "-db", "-f", file];
  return ["caddy", "run", "--config", file, "--adapter", "caddyfile"];
};

export interface RunningProxy {
  readonly url: string;
  /** HAProxy's own view of its server: status and last check. */
  server(): Promise<{ readonly status: string; readonly check: string; readonly code: string }>;
  close(): Promise<void>;
}

/** Resolves once the proxy accepts connections. */
export const startProxy = async (kind: Kind, behind: Behind): Promise<RunningProxy> => {
  const dir = await mkdtemp(join(tmpdir(), folderPrefix("proxy")));
  const at = await freePort();
  const file = join(dir, kind);
  await writeFile(join(dir, "both.pem"), (await Promise.all([behind.issued.certFile, behind.issued.keyFile].map((name) => readFile(name, "utf8")))).join(""));
  await writeFile(file, WRITTEN[kind](await readFile(join(ROOT, "docs/deploy", kind), "utf8"), { ...behind, dir, at }));
  const [program = "", ...words] = command(kind, dir, file);
  const env = { PATH: `${process.env["PATH"]}:/usr/sbin:/usr/local/sbin`, HOME: dir, XDG_DATA_HOME: dir, XDG_CONFIG_HOME: dir };
  const child: ChildProcess = spawn(program, words, { env, stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
  child.once("error", (error) => {
    said += error.message;
  });
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const takesConnections = async (): Promise<void> => {
    const socket = dial(at, "127.0.0.1");
    await once(socket, "connect").finally(() => socket.destroy());
  };
  const close = async (): Promise<void> => {
    child.kill("SIGKILL");
    await ended;
    await rm(dir, { recursive: true, force: true });
  };
  try {
    await Promise.race([eventually(takesConnections), ended.then(() => Promise.reject(new Error(`${program} ended: ${said}`)))]);
  } catch (error) {
    await close();
    throw error;
  }
  return {
    url: `${isSecure(kind) ? "https" : "http"}://127.0.0.1:${at}`,
    server: async () => {
      const socket = dial(join(dir, "stats"));
      let csv = "";
      socket.setEncoding("utf8").on("data", (text: string) => {
        csv += text;
      });
      socket.end("show stat\n");
      await once(socket, "close");
      const [head = "", ...lines] = csv.split("\n");
      const names = head.replace(/^# /, "").split(",");
      const row = lines.map((line) => line.split(",")).find((columns) => columns[names.indexOf("svname")] === "node1") ?? [];
      const of = (name: string): string => row[names.indexOf(name)] ?? "";
      return { status: of("status"), check: of("check_status"), code: of("check_code") };
    },
    close,
  };
};
