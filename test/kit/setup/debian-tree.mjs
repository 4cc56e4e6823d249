// Runs Node in a tree of another Debian release, made by debootstrap from the mirror that this machine's apt uses. Needs root and Debian.
import { spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const say = (text) => void process.stderr.write(`${text}\n`);
const PATH = "/node:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** The first mirror of Debian's own main packages. */
const readMirror = () => {
  const fields = "$(IDENTIFIER)|$(ORIGIN)|$(LABEL)|$(COMPONENT)|$(REPO_URI)";
  const { stdout } = spawnSync("apt-get", ["indextargets", "--format", fields], { encoding: "utf8" });
  const line = (stdout ?? "").split("\n").find((each) => each.startsWith("Packages|Debian|Debian|main|"));
  return line?.split("|").at(-1) ?? null;
};

// Its mounts are the process's own, so they end with it, and whoever removes the tree does not reach the repository through it.
const IN_TREE = `set -e
tree=$1 repo=$2 node=$3; shift 3
mount --bind "$repo" "$tree/repo"; mount --bind "$node" "$tree/node"; mount -t proc proc "$tree/proc"
exec chroot "$tree" /bin/sh -c 'cd /repo && exec /node/node "$@"' sh "$@"`;

/** Makes the tree, with these packages beside the smallest set. Returns whether that succeeded. */
const makeTree = (release, tree, packages) => {
  const mirror = readMirror();
  if (process.getuid?.() !== 0 || mirror === null) {
    say("a tree of another Debian needs root, and Debian's packages in the sources of apt");
    return false;
  }
  if (spawnSync(process.execPath, ["test/kit/setup/ensure-packages.mjs", "debootstrap"], { stdio: "inherit" }).status !== 0) return false;
  say(`making a tree of Debian ${release}`);
  // Its users have to reach what is in it.
  chmodSync(tree, 0o755);
  const include = packages.length === 0 ? [] : [`--include=${packages.join(",")}`];
  return spawnSync("debootstrap", ["--variant=minbase", ...include, release, tree, mirror], { stdio: ["ignore", "ignore", "inherit"] }).status === 0;
};

/** Calls `work` with a function that runs a command of this repository with that Node in the release; its answer says whether the command succeeded. */
export const inDebian = (release, node, work) => {
  const tree = mkdtempSync(join(tmpdir(), `mooring-${release}-`));
  const { http_proxy, https_proxy } = process.env;
  const env = { http_proxy, https_proxy, PATH, HOME: "/root", LC_ALL: "C.UTF-8" };
  const run = (...words) =>
    spawnSync("unshare", ["--mount", "sh", "-c", IN_TREE, "sh", tree, process.cwd(), dirname(node), ...words], { stdio: "inherit", env }).status === 0;
  try {
    if (!makeTree(release, tree, [])) return false;
    for (const folder of ["repo", "node"]) mkdirSync(join(tree, folder));
    copyFileSync("/etc/resolv.conf", join(tree, "etc/resolv.conf"));
    return work(run);
  } finally {
    spawnSync("rm", ["-rf", "--one-file-system", tree], { stdio: "inherit" });
  }
};

// node test/kit/setup/debian-tree.mjs RELEASE FOLDER PACKAGE…: makes a tree and leaves it.
if (import.meta.filename === process.argv[1]) {
  const [release, tree, ...packages] = process.argv.slice(2);
  process.exitCode = makeTree(release, tree, packages) ? 0 : 1;
}
