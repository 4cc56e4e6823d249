// Runs npm scripts at once, prints what each has said when it has ended, and fails if one of them fails.
// `node at-once.mjs check:lint check:imports`
import { spawn } from "node:child_process";

const run = (name) =>
  new Promise((resolve) => {
    const child = spawn("npm", ["run", "--silent", name], { stdio: ["ignore", "pipe", "pipe"] });
    const said = [];
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (part) => said.push(part));
    child.once("error", (error) => said.push(Buffer.from(`${error.message}\n`)));
    child.once("close", (code) => {
      process.stdout.write(Buffer.concat(said));
      if (code !== 0) process.stdout.write(`npm run ${name} failed\n`);
      resolve(code === 0);
    });
  });

const passed = await Promise.all(process.argv.slice(2).map(run));
process.exitCode = passed.every(Boolean) ? 0 : 1;
