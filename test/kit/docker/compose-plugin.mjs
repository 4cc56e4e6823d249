// Makes sure that `docker compose` exists for the tests. Debian 12 has the engine but not version 2 of Compose, which is in the release after it: its package
// is fetched from the machine's own mirror, checked by apt against the archive's keys, and only its one binary is kept, in the user's cache.
import { spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** engine.ts reads it from there. */
export const PLUGIN = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "mooring-tests", "docker-compose");
const NEXT_RELEASE = "trixie";
const WITHIN_MS = 300_000;

const run = (words, options = {}) => spawnSync(words[0], words.slice(1), { encoding: "utf8", timeout: WITHIN_MS, ...options });
const succeeds = (...words) => run(words, { stdio: "ignore" }).status === 0;

export const hasCompose = () => succeeds("docker", "compose", "version") || (existsSync(PLUGIN) && succeeds(PLUGIN, "version"));

/** The package of this release that holds version 2, if there is one. */
export const packageWithCompose = () =>
  ["docker-compose-v2", "docker-compose"].find((name) => /^ +Candidate: (?:\d+:)?[2-9]/m.test(run(["apt-cache", "policy", name]).stdout ?? ""));

const codename = () => /^VERSION_CODENAME=(\S+)$/m.exec(existsSync("/etc/os-release") ? readFileSync("/etc/os-release", "utf8") : "")?.[1];

/** The machine's own sources, for another release. */
const sourcesOf = (release, own) => {
  const folder = "/etc/apt/sources.list.d";
  const files = existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : [];
  const texts = (ending) => files.filter((file) => file.endsWith(ending)).map((file) => readFileSync(file, "utf8"));
  const stanzas = texts(".sources")
    .flatMap((text) => text.replaceAll(/^#.*\n/gm, "").split(/\n{2,}/))
    .filter((stanza) => /^Types:.*\bdeb\b/m.test(stanza) && new RegExp(`^Suites:(?:.*\\s)?${own}(?:\\s|$)`, "m").test(stanza))
    .map((stanza) => stanza.replace(/^Suites:.*$/m, `Suites: ${release}`).replace(/^Types:.*$/m, "Types: deb"));
  const list = "/etc/apt/sources.list";
  const lines = [...texts(".list"), existsSync(list) ? readFileSync(list, "utf8") : ""]
    .flatMap((text) => text.split("\n"))
    .filter((line) => new RegExp(`^deb\\s.*\\s${own}\\s`).test(line))
    .map((line) => line.replace(new RegExp(`\\s${own}\\s`), ` ${release} `));
  return { stanzas, lines };
};

/** Fetches the binary of the next release; false if that cannot be done. */
export const fetchCompose = () => {
  const own = codename();
  if (own === undefined || !succeeds("apt-get", "--version")) return false;
  const { stanzas, lines } = sourcesOf(NEXT_RELEASE, own);
  if (stanzas.length + lines.length === 0) return false;
  const folder = mkdtempSync(join(tmpdir(), "mooring-compose-"));
  try {
    const file = join(folder, stanzas.length > 0 ? "next.sources" : "next.list");
    writeFileSync(file, stanzas.length > 0 ? stanzas.join("\n\n") : lines.join("\n"));
    for (const name of ["lists/partial", "cache/archives/partial", "unpacked"]) mkdirSync(join(folder, name), { recursive: true });
    const apart = {
      "Dir::State::Lists": join(folder, "lists"),
      "Dir::Cache": join(folder, "cache"),
      "Dir::Etc::SourceList": file,
      "Dir::Etc::SourceParts": "/dev/null",
      "APT::Sandbox::User": "root",
      "APT::Update::Error-Mode": "any",
    };
    const apt = (...words) =>
      run(["apt-get", "-qq", ...Object.entries(apart).flatMap(([name, value]) => ["-o", `${name}=${value}`]), ...words], {
        cwd: folder,
        stdio: ["ignore", "ignore", "inherit"],
      }).status === 0;
    if (!apt("update") || !apt("download", "docker-compose")) return false;
    const deb = readdirSync(folder).find((name) => name.endsWith(".deb"));
    if (deb === undefined || !succeeds("dpkg-deb", "-x", join(folder, deb), join(folder, "unpacked"))) return false;
    mkdirSync(dirname(PLUGIN), { recursive: true });
    const partial = `${PLUGIN}.${process.pid}`;
    copyFileSync(join(folder, "unpacked/usr/libexec/docker/cli-plugins/docker-compose"), partial);
    chmodSync(partial, 0o755);
    renameSync(partial, PLUGIN);
    return hasCompose();
  } finally {
    rmSync(folder, { recursive: true });
  }
};
