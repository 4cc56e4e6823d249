#!/usr/bin/env node
// Starts Debian's Firefox for playwright-core and relays their messages (WebDriver BiDi). Playwright asks for emulations that an ESR does not know yet, the
// color scheme's for one, and would open no page without them. The relay reports them as done, so they change nothing.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { createInterface } from "node:readline";
import { WebSocket, WebSocketServer } from "ws";

// A driver that was killed reads no more.
process.stderr.on("error", () => undefined);

const args = process.argv.slice(2);
const profile = args[args.indexOf("--profile") + 1];
// Its caches are in the profile, too.
const firefox = spawn("firefox-esr", args, { env: { ...process.env, HOME: profile }, stdio: ["ignore", "inherit", "pipe"] });
firefox.once("exit", (code) => {
  // Playwright does so unless it was killed.
  rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  process.exit(code ?? 1);
});

const endpoint = await new Promise((resolve) => {
  createInterface({ input: firefox.stderr }).on("line", (line) => {
    const [, found] = /^WebDriver BiDi listening on (ws:\S+)/.exec(line) ?? [];
    if (found === undefined) process.stderr.write(`${line}\n`);
    else resolve(found);
  });
});
const browser = new WebSocket(`${endpoint}/session`);
await once(browser, "open");

const known = (text) => {
  const { id, error, message = "" } = JSON.parse(text);
  return error === "unknown command" && message.startsWith("emulation.") ? JSON.stringify({ type: "success", id, result: {} }) : text;
};
const server = new WebSocketServer({ host: "127.0.0.1", port: 0 });
server.once("connection", (driver) => {
  driver.on("message", (data) => browser.send(String(data)));
  browser.on("message", (data) => driver.send(known(String(data))));
  driver.once("close", () => firefox.kill());
});
await once(server, "listening");
process.stderr.write(`WebDriver BiDi listening on ws://127.0.0.1:${server.address().port}\n`);
