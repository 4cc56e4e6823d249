// A certificate authority for one test and the certificates that it issues, made with openssl: nothing else in the suite writes X.509.
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { copyFile, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const openssl = async (...words: readonly string[]): Promise<void> => {
  await promisify(execFile)("openssl", [...words]);
};
const KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

export interface Issued {
  readonly certFile: string;
  readonly keyFile: string;
}

export const createAuthority = async () => {
  const dir = await mkdtemp(join(tmpdir(), "mooring-ca-"));
  const at = (name: string): string => join(dir, name);
  await openssl("req", "-x509", ...KEY, "-keyout", at("ca.key"), "-out", at("ca.pem"), "-days", "30", "-subj", "/CN=Authority of a test");

  /** Issues a certificate for loopback, or for these names, under any common name. */
  const issue = async (name: string, names: readonly string[] = ["localhost"]): Promise<Issued> => {
    const [certFile, keyFile] = [at(`${name}.pem`), at(`${name}.key`)];
    await openssl("req", ...KEY, "-keyout", keyFile, "-out", at(`${name}.csr`), "-subj", `/CN=${name}`);
    await writeFile(at(`${name}.ext`), `subjectAltName=${names.map((each) => `DNS:${each},`).join("")}IP:127.0.0.1`);
    const signed = [
      "-CA",
      at("ca.pem"),
      "-CAkey",
      at("ca.key"),
      "-set_serial",
      `0x${randomBytes(16).toString("hex")}`,
      "-days",
      "10",
      "-extfile",
      at(`${name}.ext`),
    ];
    await openssl("x509", "-req", "-in", at(`${name}.csr`), ...signed, "-out", certFile);
    return { certFile, keyFile };
  };

  return {
    dir,
    caFile: at("ca.pem"),
    ca: await readFile(at("ca.pem")),
    issue,
    /** Replaces the files as renewal tools do: each one atomically, one after the other. */
    replace: async (old: Issued, by: Issued): Promise<void> => {
      for (const name of ["certFile", "keyFile"] as const) {
        await copyFile(by[name], `${old[name]}.new`);
        await rename(`${old[name]}.new`, old[name]);
      }
    },
    remove: () => rm(dir, { recursive: true, force: true }),
  };
};
export type Authority = Awaited<ReturnType<typeof createAuthority>>;
