// A certificate authority (pebble, strict, which refuses a fifth of all nonces) and a name server (pebble-challtestsrv) for one test. Debian's package
// `pebble` has both.
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { get } from "node:https";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { eventually } from "../checks/eventually.ts";
import { createAuthority } from "./certificates.ts";
import { type Child, plainEnv, startChild } from "./children.ts";
import { freePort } from "./free-port.ts";

export interface NameServer {
  /** As DNS_SERVERS takes it. */
  readonly address: string;
  txt(name: string, ...values: readonly string[]): Promise<void>;
  cname(name: string, target: string | null): Promise<void>;
  a(name: string, ...addresses: readonly string[]): Promise<void>;
  caa(name: string, issuer: string | null): Promise<void>;
  servfail(name: string, fails: boolean): Promise<void>;
}

const post = async (url: string, body: object): Promise<void> => {
  const { status } = await fetch(url, { method: "POST", body: JSON.stringify(body) });
  if (status !== 200) throw new Error(`the name server answered ${status} to ${url}`);
};

export const startNameServer = async (): Promise<NameServer & { close(): Promise<void> }> => {
  const [dns, management] = [await freePort(), await freePort()];
  const off = ["-http01", "", "-https01", "", "-tlsalpn01", "", "-defaultIPv4", "", "-defaultIPv6", ""];
  const words = ["-dns01", `127.0.0.1:${dns}`, "-management", `127.0.0.1:${management}`, ...off];
  const child = startChild({ command: "pebble-challtestsrv", words, env: plainEnv() });
  const tell = (what: string, body: object): Promise<void> => post(`http://127.0.0.1:${management}/${what}`, body);
  await eventually(() => tell("clear-txt", { host: "ready.test." }));
  const host = (name: string): string => `${name}.`;
  return {
    address: `127.0.0.1:${dns}`,
    txt: async (name, ...values) => {
      await tell("clear-txt", { host: host(name) });
      for (const value of values) await tell("set-txt", { host: host(name), value });
    },
    cname: (name, target) => (target === null ? tell("clear-cname", { host: host(name) }) : tell("set-cname", { host: host(name), target: host(target) })),
    a: async (name, ...addresses) => {
      await tell("clear-a", { host: host(name) });
      if (addresses.length > 0) await tell("add-a", { host: host(name), addresses });
    },
    caa: (name, issuer) =>
      issuer === null ? tell("clear-caa", { host: host(name) }) : tell("add-caa", { host: host(name), policies: [{ tag: "issue", value: issuer }] }),
    servfail: (name, fails) => tell(fails ? "set-servfail" : "clear-servfail", { host: host(name) }),
    close: async () => void (await child.stop()),
  };
};

export interface AcmeServer {
  readonly directoryUrl: string;
  readonly caFile: string;
  readonly ca: Buffer;
  /** The certificate that all of its certificates lead to. */
  root(): Promise<string>;
  /** Starts it again after `stop`. It forgets its accounts and orders. */
  start(): Promise<void>;
  stop(): Promise<void>;
  close(): Promise<void>;
  /** The certificates that it has made. */
  readonly issued: number;
}

export interface AcmeServerOptions {
  /** Where it asks for challenges. */
  readonly httpPort: number;
  readonly dnsServer: string;
}

export const startAcmeServer = async ({ httpPort, dnsServer }: AcmeServerOptions): Promise<AcmeServer> => {
  const tls = await createAuthority();
  const { certFile, keyFile } = await tls.issue("pebble");
  const [port, managementPort] = [await freePort(), await freePort()];
  const config = join(tls.dir, "pebble.json");
  const listens = { listenAddress: `127.0.0.1:${port}`, managementListenAddress: `127.0.0.1:${managementPort}` };
  await writeFile(
    config,
    JSON.stringify({
      pebble: { ...listens, certificate: certFile, privateKey: keyFile, httpPort, tlsPort: 1, ocspResponderURL: "", externalAccountBindingRequired: false },
    }),
  );
  let child: Child | undefined;
  let issued = 0;
  const start = async (): Promise<void> => {
    const env = { ...plainEnv(), PEBBLE_VA_NOSLEEP: "1", PEBBLE_WFE_NONCEREJECT: "20", PEBBLE_AUTHZREUSE: "100" };
    child = startChild({ command: "pebble", words: ["-config", config, "-strict", "-dnsserver", dnsServer], env });
    child.process.stdout?.on("data", (text: string) => {
      issued += text.split("Issued certificate serial").length - 1;
    });
    await child.waitFor("ACME directory available", 15_000);
  };
  const stop = async (): Promise<void> => {
    await child?.stop();
    child = undefined;
  };
  await start();
  return {
    directoryUrl: `https://localhost:${port}/dir`,
    caFile: tls.caFile,
    ca: tls.ca,
    root: async () => {
      const [answer] = (await once(get(`https://localhost:${managementPort}/roots/0`, { ca: tls.ca }), "response")) as [IncomingMessage];
      return text(answer);
    },
    start,
    stop,
    close: async () => {
      await stop();
      await tls.remove();
    },
    get issued() {
      return issued;
    },
  };
};
