// A bare Debian with systemd, curl and nothing else becomes a device by the console's line, and is none any more when the agent is removed.
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { eventually } from "../../kit/checks/eventually.ts";
import { type DockerEngine, startDockerEngine } from "../../kit/docker/engine.ts";
import { type Offering, startOffering } from "./offering.ts";

const IMAGE = "mooring-test/machine:1";
const MACHINE = "machine";
/** What a machine has that people set up as servers. */
const PACKAGES = ["systemd", "systemd-sysv", "dbus", "curl", "ca-certificates", "passwd"];
/** What systemd needs in a container. The network is this machine's, where the gateway listens. */
const LIKE_A_MACHINE = [
  ..."--cap-add SYS_ADMIN --security-opt seccomp=unconfined --security-opt apparmor=unconfined --network host --cgroupns=host".split(" "),
  ..."--tmpfs /run --tmpfs /tmp --tmpfs /var/tmp --volume /sys/fs/cgroup:/sys/fs/cgroup:rw --env container=docker".split(" "),
];
/** Within which the console shows the device as online. */
const ONLINE_MS = 30_000;
vi.setConfig({ testTimeout: 180_000, hookTimeout: 300_000 });

let engine: DockerEngine;
let offering: Offering;

beforeAll(async () => {
  [offering, engine] = await Promise.all([startOffering(), startDockerEngine()]);
  await engine.makeDebian(IMAGE, "stable", PACKAGES);
  await engine.docker("run", "--detach", "--name", MACHINE, ...LIKE_A_MACHINE, IMAGE, "/sbin/init");
  await engine.docker("cp", offering.authority.caFile, `${MACHINE}:/root/ca.pem`);
  await started();
});
afterAll(async () => {
  await engine?.close();
  await offering?.close();
});

const inside = (line: string): Promise<string> => engine.docker("exec", MACHINE, "sh", "-c", line);
const started = () => eventually(async () => expect(await inside("systemctl is-system-running || :")).toMatch(/running|degraded/), ONLINE_MS);
const online = (deviceId: string) =>
  eventually(async () => expect(await offering.call(`/v1/devices/${deviceId}`)).toMatchObject({ status: "online" }), { boundMs: ONLINE_MS, stepMs: 500 });
/** How many processes the user of the agent has. */
const processes = async (): Promise<number> => Number(await inside("stat -c %U /proc/[0-9]* 2>/dev/null | grep -c '^mooring-agent$' || :"));
/** What is there now and was not in the image. */
const additions = async (): Promise<readonly string[]> =>
  (await engine.docker("diff", MACHINE)).split("\n").flatMap((line) => (line.startsWith("A ") ? [line.slice(2)] : []));

test("the line makes it a device that is online in half a minute and after a reboot, and removal leaves no file but data", async () => {
  const before = new Set(await additions());
  const news = async () => (await additions()).filter((path) => !before.has(path));
  const command = (await offering.line("--host process", "/root/ca.pem")).replace("sudo ", "");
  expect(await inside(command)).toContain("This device is in the console");
  const { device_id: deviceId } = JSON.parse(await inside("cat /var/lib/mooring-agent/identity.json"));
  await online(deviceId);
  expect(await news()).toEqual(expect.arrayContaining(["/opt/mooring-agent", "/etc/mooring-agent/config.yaml", "/etc/systemd/system/mooring-agent.service"]));

  expect(await processes()).toBeGreaterThan(0);
  await engine.docker("restart", "--time", "20", MACHINE);
  await eventually(async () => expect(await inside("mooring-agent status")).toContain(`${deviceId} at ${offering.url}: connected since`), ONLINE_MS);
  await online(deviceId);

  expect(await inside(`curl --cacert /root/ca.pem -fsSL ${offering.url}/install.sh | sh -s -- --uninstall`)).toContain("its data stay");
  // Systemd and journald write what is theirs.
  expect((await news()).filter((path) => !/^\/var\/(?:lib\/mooring-agent|lib\/systemd|log)(?:\/|$)/.test(path))).toEqual([]);
  expect(await inside("ls /var/lib/mooring-agent")).toContain("identity.json");
  expect(await processes()).toBe(0);
});
