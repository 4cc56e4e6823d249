// The app that agents run in suite apps: it tells over HTTP what it got, keeps a file, logs, and ends badly when it is asked to.
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";

const { PORT, DATA_DIR, BROKEN, TITLE, TOKEN } = process.env;
const say = (text) => process.stdout.write(`${text}\n`);

say(`kit-app ${TITLE} has the token ${TOKEN}`);
if (BROKEN === "yes") {
  say("kit-app is broken as ordered");
  process.exit(3);
}
const starts = join(DATA_DIR, "starts");
appendFileSync(starts, `${TITLE}\n`);

const answers = {
  "/health": () => "healthy",
  "/environment": () => JSON.stringify(process.env),
  "/starts": () => readFileSync(starts, "utf8"),
  "/pid": () => String(process.pid),
  "/log": () => {
    for (let n = 0; n < 20; n += 1) say(`line ${n} with ${TOKEN} and ${Buffer.from(TOKEN).toString("base64")}`);
    return "logged";
  },
  "/crash": () => {
    setTimeout(() => process.exit(7), 20);
    return "crashes";
  },
};
const server = createServer((request, response) => {
  const answer = Object.hasOwn(answers, request.url) ? answers[request.url]() : null;
  response.writeHead(answer === null ? 404 : 200).end(answer ?? "");
});
server.listen(Number(PORT), "127.0.0.1");
// Apps outlive their agents. When the kit has removed the folder of the case, nobody needs it any more.
setInterval(() => existsSync(DATA_DIR) || process.exit(0), 500);
process.on("SIGTERM", () => process.exit(0));
