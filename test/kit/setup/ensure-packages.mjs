// Makes sure that the programs exist which the tests run beside the gateway. It installs missing ones where it can and otherwise asks for them in one
// line; no test is skipped. `node ensure-packages.mjs redis-server` checks only that one.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { fetchCompose, hasCompose, packageWithCompose } from "../docker/compose-plugin.mjs";

// Debian installs daemons into folders that only root has in its PATH.
const env = { ...process.env, PATH: `${process.env.PATH}:/usr/local/sbin:/usr/sbin:/sbin`, DEBIAN_FRONTEND: "noninteractive" };
const runs = (...words) => spawnSync(words[0], words.slice(1), { stdio: "ignore", env }).status === 0;
/** It fills a container by itself, without any library. */
const hasStaticBusybox = () => ["/bin/busybox", "/usr/bin/busybox"].some((path) => existsSync(path) && !runs("ldd", path));
const versions = "/usr/lib/postgresql";
const hasPostgres = () =>
  runs("postgres", "--version") || (existsSync(versions) && readdirSync(versions).some((version) => existsSync(`${versions}/${version}/bin/postgres`)));

/** Debian's packages, each with the check whether it is installed. */
const PACKAGES = new Map([
  ["redis-server", () => runs("redis-server", "--version")],
  ["openssl", () => runs("openssl", "version")],
  ["restic", () => runs("restic", "version")],
  ["nginx", () => runs("nginx", "-v")],
  ["haproxy", () => runs("haproxy", "-v")],
  ["caddy", () => runs("caddy", "version")],
  ["chromium-headless-shell", () => runs("chromium-headless-shell", "--version")],
  ["firefox-esr", () => runs("firefox-esr", "--version")],
  ["pgbouncer", () => runs("pgbouncer", "--version")],
  ["postgresql", hasPostgres],
  // Debian's packages belong to Debian's Python; another python3 may come first in the PATH.
  ["python3-websockets", () => ["/usr/bin/python3", "python3"].some((python) => runs(python, "-c", "import websockets"))],
  // A certificate authority (ACME) and a name server, for custom domains.
  ["pebble", () => ["pebble", "pebble-challtestsrv"].every((name) => runs("sh", "-c", `command -v ${name}`))],
  ["prometheus", () => runs("prometheus", "--version") && runs("promtool", "--version")],
  ["busybox-static", hasStaticBusybox],
  ["shellcheck", () => runs("shellcheck", "--version")],
  ["curl", () => runs("curl", "--version")],
  ["docker.io", () => runs("dockerd", "--version") && runs("docker", "--version")],
  ["docker-compose", hasCompose],
  // For systemd-analyze, which checks the unit file; nothing is started. Only Linux has it.
  ...(process.platform === "linux" ? [["systemd", () => runs("systemd-analyze", "--version")]] : []),
]);

/** They do as well where the package cannot be had. A visitor in the whole Chromium costs eight times the processor time, for windows that nobody sees. */
const REPLACEMENTS = new Map([["chromium-headless-shell", () => runs("chromium", "--version")]]);

/** Only for those who ask: a row of the matrix makes a tree of another Debian. */
const ON_REQUEST = new Map([["debootstrap", () => runs("debootstrap", "--version")]]);

const wanted = process.argv.length > 2 ? process.argv.slice(2) : [...PACKAGES.keys()];
const missing = () => wanted.filter((name) => !(PACKAGES.get(name) ?? ON_REQUEST.get(name))());
const unmet = () => missing().filter((name) => !REPLACEMENTS.get(name)?.());

const run = (...words) => spawnSync(words[0], words.slice(1), { stdio: ["ignore", "ignore", "inherit"], env }).status === 0;
const install = (names) => {
  process.stdout.write(`installing ${names.join(", ")} for the tests\n`);
  // The packages would start their services, and PostgreSQL would make a cluster; the tests do both themselves.
  // The files that prevent this are temporary and never replace existing ones.
  const script = [
    "set -e; policy=/usr/sbin/policy-rc.d; clusters=/etc/postgresql-common/createcluster.d; lent=$clusters/mooring-tests.conf",
    "if [ ! -e $policy ]; then printf '#!/bin/sh\\nexit 101\\n' > $policy; chmod 755 $policy; lent=\"$lent $policy\"; fi",
    "trap 'rm -f $lent' EXIT; mkdir -p $clusters; echo 'create_main_cluster = false' > $clusters/mooring-tests.conf",
    'apt-get -o DPkg::Lock::Timeout=120 install -y -qq --no-install-recommends "$@"',
  ].join("\n");
  return run("sh", "-c", script, "sh", ...names);
};

/** From Debian 13 on, Docker's client is a package of its own. Other distributions may know only the whole Chromium. */
const inThisRelease = (name) => {
  if (name === "docker-compose") return [packageWithCompose()].filter((found) => found !== undefined);
  if (name === "chromium-headless-shell" && !runs("apt-cache", "show", name)) return ["chromium"];
  return name === "docker.io" && runs("apt-cache", "show", "docker-cli") ? [name, "docker-cli"] : [name];
};
const provide = (names) => {
  if (!run("apt-get", "-o", "DPkg::Lock::Timeout=120", "update", "-qq")) return false;
  const packages = names.flatMap(inThisRelease);
  if (packages.length > 0 && !install(packages)) return false;
  return unmet().every((name) => name === "docker-compose" && fetchCompose());
};

const lacking = missing();
const canInstall = process.getuid?.() === 0 && runs("apt-get", "--version");
if (lacking.length > 0 && canInstall) provide(lacking);
const names = lacking.length === 0 ? [] : unmet();
if (names.length > 0) {
  process.stderr.write(`The tests need programs that are missing: install them (Debian: apt-get install ${names.join(" ")}) and run this again.\n`);
  process.exit(1);
}
