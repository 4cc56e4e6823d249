// `npm run agent:release`: packs this version of the agent and signs it, for the folder of releases that a gateway offers to its agents.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { AgentRelease } from "../protocol/records/devices/agent-release.ts";
import { AGENT_VERSION, packageRoot } from "./agent/index.ts";
import { createKeys, MAIN, releaseFile, signRelease } from "./update/release.ts";

const HELP = `Packs this version of the agent and signs it.

  npm run agent:release -- --new-key FILE
      Writes a private key to FILE and prints the public one, which agents get as --update-key. Keep FILE away from the gateway.

  npm run agent:release -- --key FILE --out DIR [--version X.Y.Z] [--channel stable] [--mandatory] [--min-version X.Y.Z] [--url URL]
      Writes the package and its signed release into DIR, the AGENT_RELEASES_DIR of the gateway.

  --mandatory      agents update by themselves; otherwise they wait for the command agent-update
  --min-version    older agents cannot update to it directly
  --url            where you publish the package, if the gateway does not serve it
`;

/** The one file that runs on devices, as the build made it, under this version. */
export const packAgent = (version: string): string => {
  const text = readFileSync(join(packageRoot(import.meta.dirname), "dist/agent/mooring-agent.mjs"), "utf8");
  const [own, given] = [AGENT_VERSION, version].map((each) => `version:${JSON.stringify(each)},files:`) as [string, string]; // as: two of them
  if (!text.includes(own)) throw new Error("the build of the agent is another version's; run: npm run build");
  const named = JSON.stringify({ name: "mooring-agent", version, type: "module" });
  return JSON.stringify({ "package.json": named, [MAIN]: text.replace(own, () => given) });
};

const main = (): number => {
  const text = { type: "string" } as const;
  const { values } = parseArgs({
    options: {
      "new-key": text,
      key: text,
      out: text,
      version: { ...text, default: AGENT_VERSION },
      channel: { ...text, default: "stable" },
      mandatory: { type: "boolean", default: false },
      "min-version": text,
      url: text,
      help: { type: "boolean", short: "h", default: false },
    },
  });
  const { "new-key": newKey, key, out, version, channel, mandatory, "min-version": minVersion = null } = values;
  if (newKey !== undefined) {
    const { privateKey, publicKey } = createKeys();
    writeFileSync(newKey, privateKey, { mode: 0o600, flag: "wx" });
    process.stdout.write(`${publicKey}\n`);
    return 0;
  }
  if (values.help || key === undefined || out === undefined) {
    process.stdout.write(HELP);
    return values.help ? 0 : 2;
  }
  const content = packAgent(version);
  const name = `mooring-agent-${version}-${channel}`;
  const release = AgentRelease.parse({
    version,
    platform: "any",
    arch: "any",
    channel,
    mandatory,
    minVersion,
    url: values.url ?? `/v1/agent/updates/packages/${name}.package.json`,
    sha256: createHash("sha256").update(content).digest("hex"),
    size: Buffer.byteLength(content),
  });
  mkdirSync(out, { recursive: true });
  writeFileSync(join(out, `${name}.package.json`), content);
  // Last, so that no gateway offers it before its package is there.
  writeFileSync(join(out, `${name}.release.json`), releaseFile(signRelease(release, readFileSync(key, "utf8"))));
  process.stdout.write(`${join(out, `${name}.release.json`)}\n`);
  return 0;
};

process.exitCode = main();
