// `npm run agent:package`: makes the packages of the agent for devices, each with a Node of its own, into dist/agent, from where the gateway serves them.
// The same sources and pins give the same bytes.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { signSums, sumFiles } from "./sums.mjs";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const folder = join(root, "dist/agent");
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

/** From npm, by exact version and integrity. The newest for each platform that npm carries. */
const NODES = {
  "linux-x64": { deb: "amd64", node: "22.23.5", integrity: "sha512-3jhC+wcoWxKZxcRqF2sUSl0c9HEXFnur/nuIPx6O6CWKV0jOUWQm7Htw5SuXqqlMCEhi0cJqybFPEb5hhcBiMw==" },
  "linux-arm64": {
    deb: "arm64",
    node: "22.23.3",
    integrity: "sha512-l3DAHZreylo+p9QXDtsOrjG2JXJqVzYXnAGmIQNOUNARcMppTO2cmewVQP+36tjJnSE+dzpMNtgW+c3oiDvXtA==",
  },
  "linux-armv7l": {
    deb: "armhf",
    node: "20.11.0",
    integrity: "sha512-pCMLAP35VPJjuaFFkZ8kN8xQmpjH/eBUiIznFyJROtzLpuXqV75xAB12Zloy6b45T0mgujHUAT4Jad9L2G9mYg==",
  },
};
const HELP = `Makes the packages of the agent for devices, into dist/agent: a tarball and a Debian package for each platform, and SHA256SUMS.

  npm run agent:package [-- --platform linux-x64 ...] [--form tarball] [--key FILE]

  --platform NAME   one of ${Object.keys(NODES).join(", ")}; may be repeated (default: all)
  --form NAME       tarball or debian; may be repeated (default: both, where dpkg-deb is installed)
  --key FILE        the private key of your releases (npm run agent:release -- --new-key): also writes SHA256SUMS.sig

Each holds the agent, its unit and a Node, which comes from npm. The gateway serves the folder at /v1/agent/install, and /install.sh chooses from it.
`;

const fail = (message) => {
  process.stderr.write(`${message}\n`);
  process.exit(1);
};
const run = (command, words, cwd) => {
  // Times and owners of files would make each package another one.
  const { status, stdout, stderr, error } = spawnSync(command, words, { cwd, encoding: "utf8", env: { ...process.env, SOURCE_DATE_EPOCH: "0" } });
  if (status !== 0) fail(`${command} ${words[0]} failed: ${error?.message ?? stderr}`);
  return stdout;
};

const fetchNode = (platform, temp) => {
  const { node, integrity } = NODES[platform];
  process.stderr.write(`fetching Node ${node} for ${platform}…\n`);
  const [{ filename }] = JSON.parse(run("npm", ["pack", `node-${platform}@${node}`, "--json", "--pack-destination", temp], temp));
  const file = join(temp, filename);
  if (`sha512-${createHash("sha512").update(readFileSync(file)).digest("base64")}` !== integrity)
    fail(`Node for ${platform} is not the one that is pinned (another SHA-512)`);
  run("tar", ["-xzf", file, "-C", temp, "package/bin/node"], temp);
  return join(temp, "package/bin/node");
};

const WRAPPER = `#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
exec "$here/node" "$here/../lib/mooring-agent.mjs" "$@"
`;
const put = (tree, name, mode, from) => {
  mkdirSync(dirname(join(tree, name)), { recursive: true });
  if (from.file === undefined) writeFileSync(join(tree, name), from.text);
  else copyFileSync(from.file, join(tree, name));
  chmodSync(join(tree, name), mode);
};
/** What is the same in every form. */
const putAgent = (tree, node) => {
  put(tree, "bin/node", 0o755, { file: node });
  put(tree, "bin/mooring-agent", 0o755, { text: WRAPPER });
  put(tree, "lib/mooring-agent.mjs", 0o644, { file: join(folder, "mooring-agent.mjs") });
  put(tree, "lib/mooring-agent.service", 0o644, { file: join(folder, "mooring-agent.service") });
  put(tree, "LICENSE", 0o644, { file: join(root, "LICENSE") });
};

const pack = (platform, temp, node) => {
  const name = `mooring-agent-${version}-${platform}`;
  const tree = join(temp, name);
  putAgent(tree, node);
  const out = join(temp, "out.tar.gz");
  run("tar", ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "--mode=u+rwX,go+rX,go-w", "-I", "gzip -n", "-cf", out, name], temp);
  copyFileSync(out, join(folder, `${name}.tar.gz`));
  return `${name}.tar.gz`;
};

const CONFIGURE = `#!/bin/sh
set -e
if [ "$1" = configure ]; then
  id mooring-agent >/dev/null 2>&1 || useradd --system --home-dir /var/lib/mooring-agent --shell /usr/sbin/nologin mooring-agent
  install -d -o mooring-agent -m 700 /var/lib/mooring-agent
  install -d -m 755 /etc/mooring-agent
  if [ -d /run/systemd/system ]; then systemctl daemon-reload; systemctl try-restart mooring-agent || :; fi
fi
`;
const STOP = `#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then systemctl disable --now mooring-agent || :; fi
`;
const PURGE = `#!/bin/sh
set -e
if [ "$1" = purge ]; then rm -rf /var/lib/mooring-agent /etc/mooring-agent; userdel mooring-agent 2>/dev/null || :; fi
if [ -d /run/systemd/system ]; then systemctl daemon-reload || :; fi
`;
const packDebian = (platform, temp, node) => {
  const { deb } = NODES[platform];
  const tree = join(temp, "deb");
  putAgent(join(tree, "opt/mooring-agent/current"), node);
  const values = {
    PREFIX: "/opt/mooring-agent",
    CONFIG: "/etc/mooring-agent",
    DATA: "/var/lib/mooring-agent",
    OWNER: "mooring-agent",
    URL: "https://mooring.invalid",
  };
  const unit = readFileSync(join(folder, "mooring-agent.service"), "utf8")
    .replace(/^Documentation.*\n/m, "")
    .replace(/@([A-Z]+)@/g, (_, key) => values[key]);
  put(tree, "lib/systemd/system/mooring-agent.service", 0o644, { text: unit });
  put(tree, "usr/bin/mooring-agent", 0o755, { text: '#!/bin/sh\nexec /opt/mooring-agent/current/bin/mooring-agent "$@"\n' });
  const control = `Package: mooring-agent
Version: ${version}
Architecture: ${deb}
Maintainer: Mooring
Depends: libc6, libstdc++6
Recommends: restic, ca-certificates
Section: admin
Priority: optional
Description: connects this machine to a Mooring gateway as a device
 Set url in /etc/mooring-agent/config.yaml, pair with
 "mooring-agent pair", and start with "systemctl enable --now mooring-agent".
`;
  put(tree, "DEBIAN/control", 0o644, { text: control });
  for (const [script, text] of [
    ["postinst", CONFIGURE],
    ["prerm", STOP],
    ["postrm", PURGE],
  ])
    put(tree, `DEBIAN/${script}`, 0o755, { text });
  const name = `mooring-agent_${version}_${deb}.deb`;
  run("dpkg-deb", ["--root-owner-group", "-Zxz", "-z6", "--build", tree, join(temp, name)], temp);
  copyFileSync(join(temp, name), join(folder, name));
  return name;
};

const FORMS = { tarball: pack, debian: packDebian };
const hasDebian = () => spawnSync("dpkg-deb", ["--version"], { stdio: "ignore" }).status === 0;

const main = () => {
  const several = (all) => ({ type: "string", multiple: true, default: all });
  const { values } = parseArgs({
    options: { platform: several(Object.keys(NODES)), form: several([]), key: { type: "string" }, help: { type: "boolean", short: "h", default: false } },
  });
  if (values.help) return void process.stdout.write(HELP);
  for (const [option, known] of [
    ["platform", NODES],
    ["form", FORMS],
  ]) {
    const unknown = values[option].find((name) => !Object.hasOwn(known, name));
    if (unknown !== undefined) fail(`--${option}: ${unknown} is none of ${Object.keys(known).join(", ")}`);
  }
  if (!existsSync(join(folder, "mooring-agent.mjs"))) fail("there is no build; run: npm run build");
  const forms = values.form.length > 0 ? values.form : ["tarball", ...(hasDebian() ? ["debian"] : [])];
  if (!forms.includes("debian") && values.form.length === 0) process.stderr.write("dpkg-deb is not installed, so no Debian packages are made\n");
  for (const platform of values.platform) {
    const temp = mkdtempSync(join(tmpdir(), "agent-package-"));
    try {
      const node = fetchNode(platform, temp);
      for (const form of forms) process.stdout.write(`dist/agent/${FORMS[form](platform, temp, node)}\n`);
    } finally {
      rmSync(temp, { recursive: true });
    }
  }
  sumFiles(folder, version);
  if (values.key !== undefined) process.stdout.write(`${signSums(folder, values.key)}\n`);
};
main();
