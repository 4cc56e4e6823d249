// A real gateway over TLS with a private authority, which offers the packed agent and signed releases of it.
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { Agent, fetch } from "undici";
import { createKeys } from "../../../agent-sim/update/release.ts";
import { bootstrapTenant, createSandbox, ROOT, runToEnd, type Sandbox, startGatewayProcess } from "../../flows/processes.ts";
import { onSharedServer } from "../../flows/shared-server.ts";
import { type Authority, createAuthority } from "../../kit/net/certificates.ts";

export interface Offering {
  readonly url: string;
  readonly authority: Authority;
  readonly sandbox: Sandbox;
  /** The folder of the releases, and the key that they are signed with. */
  readonly releases: string;
  readonly signing: ReturnType<typeof createKeys>;
  /** As the owner of the tenant. Posts the body, if there is one. */
  call<T>(path: string, body?: unknown): Promise<T>;
  /** The console's line with a token, which trusts the authority in this file. */
  line(options: string, caFile?: string): Promise<string>;
  close(): Promise<void>;
}

export const startOffering = async (): Promise<Offering> => {
  // With a Node of its own, as an operator offers it.
  const words = [join(ROOT, "agent-sim/package/main.mjs"), "--platform", `linux-${process.arch}`, "--form", "tarball"];
  const { code, stderr } = await runToEnd([process.execPath, ...words], { env: {} });
  if (code !== 0) throw new Error(stderr);
  const authority = await createAuthority();
  const signing = createKeys();
  const { certFile, keyFile } = await authority.issue("gateway");
  const sandbox = await createSandbox(await onSharedServer({ TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile }));
  const releases = join(sandbox.dir, "releases");
  await mkdir(releases);
  const { url } = await startGatewayProcess({ ...sandbox.env, AGENT_RELEASES_DIR: releases, AGENT_UPDATE_KEY: signing.publicKey });
  const { token } = await bootstrapTenant(sandbox, "--unlimited");
  const dispatcher = new Agent({ connect: { ca: authority.ca } });
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const call: Offering["call"] = async (path, body) => {
    const answer = await fetch(`${url}${path}`, { dispatcher, headers, ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }) });
    return ((await answer.json()) as { data: never }).data;
  };
  return {
    ...{ url, authority, sandbox, releases, signing, call },
    line: async (options, caFile = authority.caFile) => {
      const { installCommand } = await call<{ installCommand: string }>("/v1/pairing/enrollment-tokens", { name: "machines", allowRepair: true });
      return `${installCommand.replace("curl ", `curl --cacert ${caFile} `)} --ca ${caFile} ${options}`;
    },
    close: async () => {
      await dispatcher.close();
      await sandbox.remove();
      await authority.remove();
    },
  };
};
