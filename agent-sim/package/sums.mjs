// SHA256SUMS of the folder that a gateway offers to devices. Plain JavaScript, because the build runs it.
import { createHash, createPrivateKey, sign } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Packages of other versions go. */
const PACKAGE = /^mooring-agent[-_](\d[\w.-]*?)[-_](?:linux-|amd64|arm64|armhf)/;
const SIGNATURE = "SHA256SUMS.sig";
const FILE = /^(?:mooring-agent[\w.-]*|install\.sh)$/;

export const sumFiles = (folder, version) => {
  for (const name of readdirSync(folder)) if ((PACKAGE.exec(name)?.[1] ?? version) !== version) rmSync(join(folder, name));
  const sums = readdirSync(folder)
    .filter((name) => FILE.test(name))
    .sort()
    .map(
      (name) =>
        `${createHash("sha256")
          .update(readFileSync(join(folder, name)))
          .digest("hex")}  ${name}\n`,
    );
  const [path, text] = [join(folder, "SHA256SUMS"), sums.join("")];
  // A signature of other sums would say that these are wrong.
  if (!existsSync(path) || readFileSync(path, "utf8") !== text) rmSync(join(folder, SIGNATURE), { force: true });
  writeFileSync(path, text);
};

/** With the private key of the publisher's releases, which no gateway has. */
export const signSums = (folder, key) => {
  writeFileSync(join(folder, SIGNATURE), sign(null, readFileSync(join(folder, "SHA256SUMS")), createPrivateKey(readFileSync(key, "utf8"))));
  return `dist/agent/${SIGNATURE}`;
};
