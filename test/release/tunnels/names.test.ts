// 500 custom domains with a certificate each: whoever connects under one of the names gets its certificate, a new one at once, and a name of nobody the edge's.

import { readFile } from "node:fs/promises";
import { connect } from "node:tls";
import { afterAll, beforeAll, expect, test } from "vitest";
import { inLanes } from "../../chaos/rig/calls.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { askAs } from "../../kit/gateway/ask.ts";
import { type Caller, startWorld, type World } from "../../kit/gateway/world.ts";
import { createAuthority } from "../../kit/net/certificates.ts";

const NAMES = 500;
const LANES = 8;

let authority: Awaited<ReturnType<typeof createAuthority>>;
let world: World;
let owner: Caller;
beforeAll(async () => {
  authority = await createAuthority();
  const { certFile, keyFile } = await authority.issue("edge", ["edge.test"]);
  world = await startWorld(
    { EDGE_TLS_CERT_FILE: certFile, EDGE_TLS_KEY_FILE: keyFile, TUNNEL_DOMAIN: "edge.test" },
    { settings: { withoutJobs: true }, inProcess: true },
  );
  owner = await (await world.tenant()).user("owner");
}, 60_000);
afterAll(async () => {
  await world?.close();
  await authority?.remove();
});

const call = (method: string, path: string, body: object) => askAs(world, owner, method, path, body);
const certify = async (domainId: string, hostname: string, commonName: string): Promise<void> => {
  const { certFile, keyFile } = await authority.issue(commonName, [hostname]);
  await call("PUT", `/custom-domains/${domainId}/certificate`, { certificate: await readFile(certFile, "utf8"), privateKey: await readFile(keyFile, "utf8") });
};
/** The common name of the certificate that a visitor of this name gets. */
const commonNameAt = (servername: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port: world.app.edgePort(), servername, rejectUnauthorized: false }, () => {
      resolve(String(socket.getPeerCertificate().subject.CN));
      socket.destroy();
    });
    socket.on("error", reject);
  });

test("each name is met with its own certificate, by visitors of all of them at once", { timeout: 240_000 }, async () => {
  const names = Array.from({ length: NAMES }, (_, n) => `shop-${n}.example.com`);
  const ids = new Map<string, string>();
  await inLanes(names, LANES, async (hostname) => {
    const { domainId } = await call("POST", "/custom-domains", { hostname });
    ids.set(hostname, domainId);
    // What the check of its records does.
    await world.sql.query("update custom_domains set status = 'verified', verified_at = now() where domain_id = $1", [domainId]);
    await certify(domainId, hostname, hostname);
  });
  const wrong: string[] = [];
  const visit = async (hostname: string, expected = hostname): Promise<void> => {
    const got = await commonNameAt(hostname);
    if (got !== expected) wrong.push(`${hostname}: ${got}`);
  };
  await inLanes([...names, ...names.toReversed()], 20, (hostname) => visit(hostname));
  expect(wrong).toEqual([]);
  await visit("nobody.example.com", "edge");
  expect(wrong).toEqual([]);
  const [renewed = ""] = names;
  await certify(ids.get(renewed) ?? "", renewed, "the-next-one");
  await eventually(async () => expect(await commonNameAt(renewed)).toBe("the-next-one"));
});
