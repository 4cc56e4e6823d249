// A machine becomes a device by one line: a real gateway over TLS with a private authority, the script that it serves, and the agent that it installs.
import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MAIN, releaseFile, signRelease } from "../../../agent-sim/update/release.ts";
import { node } from "../../flows/processes.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { type Machine, openMachine } from "../../kit/machine/machine.ts";
import { type Offering, startOffering } from "./offering.ts";

const WITHIN_MS = 60_000;
let offering: Offering;
const machines: Machine[] = [];
const agents: ChildProcess[] = [];

beforeAll(async () => {
  offering = await startOffering();
}, 120_000);
afterAll(async () => {
  for (const agent of agents) agent.kill("SIGKILL");
  for (const machine of machines) await machine.remove();
  await offering.close();
});

const deviceOf = async (data: string): Promise<string> => JSON.parse(await readFile(join(data, "identity.json"), "utf8")).device_id;

describe("without root", () => {
  let machine: Machine;
  let deviceId: string;
  const agent = async (words: string) => {
    const env = { MOORING_AGENT_CONFIG: join(machine.home, ".config/mooring-agent/config.yaml"), MOORING_AGENT_SOCKS_PORT: "0" };
    return machine.run(`.local/bin/mooring-agent ${words}`, { env });
  };
  const device = () => offering.call<{ status: string; agentVersion: string }>(`/v1/devices/${deviceId}`);

  test("the line installs and pairs, the agent connects, and its own commands tell so", { timeout: 120_000 }, async () => {
    machine = await openMachine();
    machines.push(machine);
    const { code, said } = await machine.run(await offering.line("--no-service --host process"));
    expect([code, said]).toEqual([0, expect.stringContaining("paired as dev_")]);
    deviceId = await deviceOf(machine.data);
    const env = { PATH: process.env["PATH"], HOME: machine.home, MOORING_AGENT_CONFIG: join(machine.home, ".config/mooring-agent/config.yaml") };
    agents.push(spawn(join(machine.home, ".local/bin/mooring-agent"), ["run", "--socks-port", "0"], { env, stdio: "ignore" }));
    expect(await agent("status --wait")).toMatchObject({ code: 0, said: expect.stringContaining(`${deviceId} at ${offering.url}: connected since`) });
    await eventually(async () => expect(await device()).toMatchObject({ status: "online" }), WITHIN_MS);
    const { said: findings } = await agent("doctor --json");
    expect(JSON.parse(findings).filter(({ verdict }: { verdict: string }) => verdict === "wrong")).toEqual([]);
    expect(findings).toContain("upgrades to a WebSocket reach the gateway");
    const { said: bundle } = await agent("support-bundle");
    expect(JSON.parse(bundle)).toMatchObject({ status: { deviceId, state: "ready" }, settings: { host: "process" }, doctor: expect.any(Array) });
    const { shared_secret: secret } = JSON.parse(await readFile(join(machine.data, "identity.json"), "utf8")) as { shared_secret: string };
    expect([secret.length > 20, bundle.includes(secret)]).toEqual([true, false]);
  });

  test("an ordered release that is signed with the pinned key replaces the installed version, and a broken one goes back", { timeout: 240_000 }, async () => {
    const order = async () => {
      const { commandId } = await offering.call<{ commandId: string }>(`/v1/devices/${deviceId}/commands`, { type: "agent-update" });
      return eventually(async () => {
        const ended = await offering.call<{ status: string; failureCode: string | null; ack: unknown }>(`/v1/commands/${commandId}`);
        expect(ended.status).toMatch(/succeeded|failed/);
        return ended;
      }, WITHIN_MS);
    };
    const key = join(offering.sandbox.dir, "release.pem");
    await writeFile(key, offering.signing.privateKey);
    const { code, stderr } = await node("agent-sim/release.js", ["--key", key, "--out", offering.releases, "--version", "60.0.0"], {
      env: offering.sandbox.env,
    });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    // A gateway that was asked a moment before has not read the new release: then the order ends well, and the version stays.
    await eventually(async () => expect(await order()).toMatchObject({ status: "succeeded", ack: { output: { version: "60.0.0" } } }), WITHIN_MS);
    await eventually(async () => expect(await device()).toMatchObject({ status: "online", agentVersion: "60.0.0" }), WITHIN_MS);

    const broken = JSON.stringify({ "package.json": JSON.stringify({ name: "mooring-agent", version: "61.0.0", type: "module" }), [MAIN]: "process.exit(3);" });
    const release = {
      ...{ version: "61.0.0", platform: "any", arch: "any", channel: "stable", mandatory: false, minVersion: null },
      url: "/v1/agent/updates/packages/broken.package.json",
      sha256: createHash("sha256").update(broken).digest("hex"),
      size: Buffer.byteLength(broken),
    } as const;
    await writeFile(join(offering.releases, "broken.package.json"), broken);
    await writeFile(join(offering.releases, "broken.release.json"), releaseFile(signRelease(release, offering.signing.privateKey)));
    await eventually(async () => expect(await order()).toMatchObject({ status: "failed", failureCode: "FAILED_BEFORE" }), WITHIN_MS);
    await eventually(async () => expect(await device()).toMatchObject({ status: "online", agentVersion: "60.0.0" }), WITHIN_MS);
  });

  test("behind a proxy that alone reaches the gateway, all of it goes through the proxy", { timeout: 60_000 }, async () => {
    const seen: string[] = [];
    const proxy = createServer();
    proxy.on("connect", ({ url: target = "" }, socket: Socket, head) => {
      seen.push(target);
      const [host, port] = target.split(":");
      const through = connect(Number(port), host, () => {
        socket.write("HTTP/1.1 200 OK\r\n\r\n");
        through.write(head);
        through.pipe(socket).pipe(through);
      });
      through.on("error", () => socket.destroy());
      socket.on("error", () => through.destroy());
    });
    proxy.listen(0, "127.0.0.1");
    await once(proxy, "listening");
    const address = proxy.address() as AddressInfo; // as: it listens on a port
    const env = { MOORING_AGENT_CONFIG: join(machine.home, ".config/mooring-agent/config.yaml"), HTTPS_PROXY: `http://127.0.0.1:${address.port}` };
    const { said } = await machine.run(".local/bin/mooring-agent doctor --json", { env });
    proxy.close();
    const findings: readonly { check: string; verdict: string }[] = JSON.parse(said);
    const verdicts = Object.fromEntries(findings.map(({ check, verdict }) => [check, verdict]));
    expect(verdicts).toMatchObject({ gateway: "ok", proxy: "ok", websocket: "ok", signature: "ok" });
    // Calls keep one connection, and the upgrade has its own.
    expect(seen).toEqual([new URL(offering.url).host, new URL(offering.url).host]);
  });

  test("removed, it leaves nothing but its data", { timeout: 60_000 }, async () => {
    for (const each of agents.splice(0)) each.kill("SIGTERM");
    const { code } = await machine.run(`curl --cacert ${offering.authority.caFile} -fsSL ${offering.url}/install.sh | sh -s -- --uninstall`);
    expect(code).toBe(0);
    expect((await machine.files()).filter((name) => !name.startsWith(".local/share/mooring-agent/"))).toEqual([]);
  });
});

test("as root it installs for the machine, with a user of its own, and leaves no file when it is purged", { timeout: 120_000 }, async () => {
  // The folders of the whole machine, as this test alone sees them.
  const folder = join(offering.sandbox.dir, "machine");
  const script = `set -e
mkdir -p ${folder}; mount -t tmpfs none ${folder}
for each in etc opt var usr; do mkdir -p ${folder}/$each/new ${folder}/$each/work; mount -t overlay overlay -o lowerdir=/$each,upperdir=${folder}/$each/new,workdir=${folder}/$each/work /$each; done
${(await offering.line("--no-service --host process")).replace("sudo sh", "sh")}
export MOORING_AGENT_SOCKS_PORT=0
su -s /bin/sh mooring-agent -c '/usr/local/bin/mooring-agent run' & sleep 0.1
su -s /bin/sh mooring-agent -c '/usr/local/bin/mooring-agent status --wait'
stat -c '%U %a %n' /var/lib/mooring-agent /var/lib/mooring-agent/identity.json
su -s /bin/sh nobody -c '/usr/local/bin/mooring-agent status' || echo "nobody may not ask: $?"
curl --cacert ${offering.authority.caFile} -fsSL ${offering.url}/install.sh | sh -s -- --uninstall --purge
id mooring-agent >/dev/null 2>&1 || echo "no such user, so none of its processes"
find ${folder} -type f -path '*mooring-agent*'
echo end`;
  const machine = await openMachine();
  machines.push(machine);
  await machine.program("id", 'exec /usr/bin/id "$@"');
  await writeFile(join(offering.sandbox.dir, "machine.sh"), script);
  const { code, said } = await machine.run(`unshare -m sh ${join(offering.sandbox.dir, "machine.sh")}`);
  expect([code, said]).toEqual([0, expect.stringContaining(": connected since")]);
  expect(said).toContain("mooring-agent 700 /var/lib/mooring-agent\nmooring-agent 600 /var/lib/mooring-agent/identity.json\n");
  expect(said).toMatch(/try sudo[\s\S]*nobody may not ask: 2/u);
  expect(said).toContain("removed mooring-agent and its data\nno such user, so none of its processes\nend\n");
});
