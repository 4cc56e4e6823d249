// Before the tests: a redis-server to test against. Installed where that is possible, asked for in one line where it is not; never skipped.
import { spawnSync } from "node:child_process";

const has = (program) => spawnSync(program, ["--version"], { stdio: "ignore" }).status === 0;
const run = (...words) =>
  spawnSync(words[0], words.slice(1), { stdio: ["ignore", "ignore", "inherit"], env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" } }).status === 0;

const install = () => {
  if (process.getuid?.() !== 0 || !has("apt-get")) return false;
  process.stdout.write("installing redis-server for the tests\n");
  // The package would start a service of its own; the tests start theirs. A policy is only lent for the moment, and never replaces one that is there.
  return (
    run("apt-get", "update", "-qq") &&
    run(
      "sh",
      "-c",
      [
        "set -e; policy=/usr/sbin/policy-rc.d",
        "if [ ! -e $policy ]; then printf '#!/bin/sh\\nexit 101\\n' > $policy; chmod 755 $policy; trap 'rm -f $policy' EXIT; fi",
        "apt-get install -y -qq redis-server",
      ].join("\n"),
    )
  );
};

if (!has("redis-server") && !(install() && has("redis-server"))) {
  process.stderr.write("The tests need redis-server 7 or newer: install it (Debian: apt-get install redis-server) and run them again.\n");
  process.exit(1);
}
