// SHA256SUMS of the folder that a gateway offers to devices. Plain JavaScript, because the build runs it.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Packages of other versions go. */
const PACKAGE = /^mooring-agent[-_](\d[\w.-]*?)[-_](?:linux-|amd64|arm64|armhf)/;
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
  writeFileSync(join(folder, "SHA256SUMS"), sums.join(""));
};
