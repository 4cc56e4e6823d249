// /install.sh as machines run it: whatever goes wrong gives one sentence and its exit code, and running the line again succeeds.

import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { chmod, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ROOT } from "../../flows/processes.ts";
import { type Machine, openMachine, type Ran } from "../../kit/machine/machine.ts";

const SOURCES = join(ROOT, "agent-sim/package");
const AGENT = "mooring-agent-1.2.3-linux-x64.tar.gz";
/** It keeps what it was asked beside the identity, and knows one token. */
const FAKE_AGENT = `#!/bin/sh
data="$HOME/.local/share/mooring-agent"
case $1 in
  pair) [ "$MOORING_AGENT_TOKEN" != wrong ] || { echo "the enrollment token is wrong" >&2; exit 1; }
    echo "$MOORING_AGENT_TOKEN" > "$data/identity.json"; tr '\\0' ' ' < "/proc/$$/cmdline" > "$data/words" ;;
  status) cat "$data/identity.json" ;;
esac
`;

let server: Server;
let url: string;
let script: string;
const offered = new Map<string, Buffer>();
let broken: string | null = null;
let machine: Machine;

const sums = (): string => [...offered].map(([name, bytes]) => `${createHash("sha256").update(bytes).digest("hex")}  ${name}\n`).join("");
const tarball = async (): Promise<Buffer> => {
  const folder = await mkdtemp(join(tmpdir(), "tarball-"));
  const tree = join(folder, "mooring-agent-1.2.3");
  await mkdir(join(tree, "bin"), { recursive: true });
  await writeFile(join(tree, "bin/mooring-agent"), FAKE_AGENT);
  await chmod(join(tree, "bin/mooring-agent"), 0o755);
  await promisify(execFile)("tar", ["-czf", join(folder, "t.tar.gz"), "-C", folder, "mooring-agent-1.2.3"]);
  const bytes = await readFile(join(folder, "t.tar.gz"));
  await rm(folder, { recursive: true });
  return bytes;
};

beforeAll(async () => {
  offered.set(AGENT, await tarball());
  offered.set("mooring-agent.service", await readFile(join(SOURCES, "mooring-agent.service")));
  server = createServer((request, response) => {
    const name = request.url?.split("/").at(-1) ?? "";
    const bytes = name === "SHA256SUMS" ? Buffer.from(sums()) : offered.get(name);
    if (bytes === undefined) return void response.writeHead(404).end("none");
    response.writeHead(200).end(name === broken ? bytes.subarray(0, -1) : bytes);
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // as: it listens on a port
  script = (await readFile(join(SOURCES, "install.sh"), "utf8")).replace("'@URL@'", `'${url}'`).replace("'@UPDATE_KEY@'", "''");
});
afterAll(() => server.close());
beforeEach(async () => {
  machine = await openMachine();
  await machine.program("uname", "case $1 in -s) echo Linux ;; *) echo x86_64 ;; esac");
});
afterEach(async () => {
  broken = null;
  await machine.remove();
});

const install = async (words = "--token good --no-service", more: Parameters<Machine["run"]>[1] = {}, text = script): Promise<Ran> => {
  await writeFile(join(machine.home, "../install.sh"), text);
  return machine.run(`cat ../install.sh | sh -s -- ${words}`, more);
};
const installed = async (): Promise<string> => readFile(join(machine.data, "identity.json"), "utf8").catch(() => "");
/** Nothing that is half there keeps the next run from its end. */
const succeedsNow = async (): Promise<void> => {
  broken = null;
  expect(await install()).toMatchObject({ code: 0 });
  expect(await installed()).toBe("good\n");
};

describe("the install script", () => {
  test("installs, configures and pairs, and run again it changes only what is newer", async () => {
    const { code, said } = await install('--token good --no-service --name "it\'s mine" --host none');
    expect([code, said]).toEqual([0, expect.stringContaining("Start the agent with")]);
    const config = join(machine.home, ".config/mooring-agent/config.yaml");
    const text = `url: ${url}\nhost: simulated\ndata: '${machine.data}'\nname: 'it''s mine'\n`;
    expect(await readFile(config, "utf8")).toBe(text);
    const before = await machine.files();
    await install("--token other --no-service --name other");
    expect([await readFile(config, "utf8"), await machine.files()]).toEqual([text, before]);
  });

  test("keeps the token out of the list of processes", async () => {
    await install("--token good --no-service");
    const words = await readFile(join(machine.data, "words"), "utf8");
    expect([words.includes("pair"), words.includes("good")]).toEqual([true, false]);
  });

  test("removes everything but the data, and with --purge the data", async () => {
    await install();
    expect((await install("--uninstall")).code).toBe(0);
    expect((await machine.files()).every((name) => name.startsWith(".local/share/mooring-agent/"))).toBe(true);
    expect(await installed()).toBe("good\n");
    await install("--uninstall --purge");
    expect(await machine.files()).toEqual([]);
  });

  test("is a whole script or nothing, wherever the download is cut off", async () => {
    const ran: number[] = [];
    const ends = Array.from({ length: Math.ceil(script.length / 64) }, (_none, at) => at * 64);
    const last = Array.from({ length: 32 }, (_none, at) => script.length - 1 - at);
    for (const end of [...ends, ...last]) {
      const { said } = await install(undefined, {}, script.slice(0, end));
      if (said.includes("installing") || (await machine.files()).length > 0) ran.push(end);
      if (ran.length > 0) break;
    }
    // Without its last line break it is whole.
    expect(ran).toEqual([script.length - 1]);
  });

  test.each<readonly [string, number, RegExp, () => Promise<Ran>]>([
    ["an unknown option", 2, /there is no option --nmae/, () => install("--nmae x")],
    ["an option without its value", 2, /--token needs a value/, () => install("--token")],
    ["an unknown host", 2, /--host: compose, process or none/, () => install("--host lxc")],
    ["no gateway", 3, /cannot be reached/, () => install("--url http://127.0.0.1:1 --no-service")],
    [
      "neither curl nor wget",
      3,
      /needs curl or wget/,
      async () => {
        const path = join(machine.home, "../few");
        await mkdir(path);
        for (const name of ["sh", "cat", "mktemp", "rm", "grep"]) await symlink(`/usr/bin/${name}`, join(path, name));
        return install(undefined, { path });
      },
    ],
    [
      "another sum",
      4,
      /not the file that the gateway names/,
      () => {
        broken = AGENT;
        return install();
      },
    ],
    [
      "a machine without a package, and without Node",
      5,
      /no agent for Linux riscv64/,
      async () => {
        await machine.program("uname", "case $1 in -s) echo Linux ;; *) echo riscv64 ;; esac");
        await machine.program("node", "exit 1");
        const ran = await install();
        await machine.program("uname", "case $1 in -s) echo Linux ;; *) echo x86_64 ;; esac");
        return ran;
      },
    ],
    [
      "no room",
      6,
      /cannot be unpacked.*is there room/,
      async () => {
        await machine.program("tar", "exit 1");
        const ran = await install();
        await machine.program("tar", 'exec /usr/bin/env -i PATH=/usr/bin:/bin tar "$@"');
        return ran;
      },
    ],
    ["a token that is refused", 7, /token is wrong\nmooring-agent: this machine is not paired/, () => install("--token wrong --no-service")],
  ])("says what is wrong with %s, and the next run succeeds", async (_name, code, sentence, run) => {
    const ran = await run();
    expect([ran.code, ran.said]).toEqual([code, expect.stringMatching(sentence)]);
    expect(ran.said.split("\n").filter((line) => line.startsWith("mooring-agent:"))).toHaveLength(1);
    await succeedsNow();
  });

  test("uses wget where there is no curl", async () => {
    await machine.program("curl", "exit 127");
    await machine.program(
      "wget",
      `while [ $# -gt 0 ]; do case $1 in -O) out=$2; shift ;; http*) from=$1 ;; esac; shift; done; PATH=/usr/bin:/bin exec curl -fsS -o "$out" "$from"`,
    );
    // `command -v` finds the curl above, so the machine of this test hides it.
    const { code } = await install(undefined, {}, script.replace("if has curl;", "if has no-curl;"));
    expect([code, await installed()]).toEqual([0, "good\n"]);
  });

  test("leaves a machine alone whose agent belongs to another gateway", async () => {
    await install();
    const { code, said } = await install("--url http://other.example --no-service");
    expect([code, said]).toEqual([2, expect.stringContaining("belongs to another gateway")]);
    expect(await readFile(join(machine.home, ".config/mooring-agent/config.yaml"), "utf8")).toContain(`url: ${url}\n`);
  });

  test.each(["curl", "tar", "sha256sum", "mkdir", "mv", "ln", "chmod"])("interrupted in %s, it succeeds when it runs again", async (name) => {
    await machine.program(name, `[ -e ../once ] || { : > ../once; kill -INT $PPID; sleep 0.1; exit 130; }; PATH=/usr/bin:/bin exec ${name} "$@"`);
    expect((await install()).code).not.toBe(0);
    await succeedsNow();
  });
});

test("it is short, plain POSIX, and shellcheck finds nothing", async () => {
  expect(script.split("\n").length).toBeLessThan(200);
  await promisify(execFile)("shellcheck", ["-s", "sh", join(SOURCES, "install.sh")]);
});
