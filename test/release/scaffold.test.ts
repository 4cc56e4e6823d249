// `npm run new` writes a feature of few files that compiles. It refuses an impossible name before it writes anything.
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { namesOf, type Taken } from "../scaffold/names.ts";
import { writeFeature } from "../scaffold/write.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const FOLDERS = ["protocol", "prisma", "server", "portal", "test"];
const COPIED = [...FOLDERS, "package.json", "tsconfig.json", "CHANGELOG.md", "LICENSE"];
/** Entry points that import all new and changed files. */
const CHECKED = [
  "server/main.ts",
  "protocol/schemas.ts",
  "protocol/guide/index.ts",
  "test/contract/samples.ts",
  "test/kit/setup/global-setup.ts",
  "test/features/spare-batteries/spare-batteries.test.ts",
  "test/portal/spare-batteries.test.ts",
];

describe("a new feature", () => {
  let root = "";
  beforeAll(() => {
    root = mkdtempSync(join(tmpdir(), "mooring-scaffold-"));
    for (const path of COPIED) cpSync(join(ROOT, path), join(root, path), { recursive: true });
    symlinkSync(join(ROOT, "node_modules"), join(root, "node_modules"));
  });
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  test("compiles unchanged, with its screens, tests and samples", { timeout: 400_000 }, () => {
    const { created } = writeFeature(root, { feature: "spare-batteries" }, new Date());
    expect(created.length).toBeLessThanOrEqual(8);
    expect(created.filter((path) => /\{\{\w+\}\}/.test(readFileSync(join(root, path), "utf8")))).toEqual([]);
    writeFileSync(join(root, "tsconfig.new.json"), JSON.stringify({ extends: "./tsconfig.json", files: CHECKED, include: [] }));
    const env = { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: "package.json" };
    execFileSync("npx", ["--no-install", "prisma", "generate", "--config", "prisma/config.ts", "--no-hints"], { cwd: root, env, stdio: "ignore" });
    execFileSync("npx", ["--no-install", "tsx", "protocol/client/build.ts"], { cwd: root, stdio: "ignore" });
    const compile = (project: string): string => {
      try {
        return execFileSync(process.execPath, [join(ROOT, "node_modules/typescript-7/bin/tsc"), "-p", project, "--noEmit"], {
          cwd: root,
          encoding: "utf8",
          stdio: ["ignore", "pipe", "ignore"],
        });
      } catch (error) {
        return String((error as { readonly stdout?: unknown }).stdout);
      }
    };
    expect(compile("tsconfig.new.json")).toBe("");
    expect(compile("portal")).toBe("");
  });

  test("is refused under a name that is taken, and no file changes", () => {
    // Of the project: others write to the packages' caches meanwhile.
    const count = (): number => FOLDERS.reduce((sum, path) => sum + readdirSync(join(root, path), { recursive: true }).length, 0);
    const before = count();
    expect(() => writeFeature(root, { feature: "devices" }, new Date())).toThrow("feature devices already exists");
    expect(() => writeFeature(root, { feature: "plans", prefix: "dev" }, new Date())).toThrow("id prefix dev is taken; choose another with --prefix");
    expect(count()).toBe(before);
  });
});

describe("names", () => {
  const taken: Taken = { features: ["devices"], prefixes: ["dev"], models: ["Device"] };

  test.each([
    ["Backups", '"Backups" is not a feature name'],
    ["backup policies", "is not a feature name"],
    ["../evil", "is not a feature name"],
    ["backup", '"backup" looks like a singular'],
    ["types", "is a reserved word"],
    ["devices", "feature devices already exists"],
  ])("%s is refused with a reason", (feature, reason) => {
    expect(() => namesOf({ feature }, taken)).toThrow(reason);
  });

  test.each([
    ["backup-policies", "BackupPolicy", "BACKUP_POLICY", "bac"],
    ["widgets", "Widget", "WIDGET", "wid"],
    ["mesh-routes", "MeshRoute", "MESH_ROUTE", "mes"],
    ["apps", "App", "APP", "app"],
    ["addresses", "Address", "ADDRESS", "add"],
  ])("%s: the record is %s, its error codes begin with %s, its ids with %s", (feature, Record, CODE, prefix) => {
    expect(namesOf({ feature }, taken)).toMatchObject({ Record, CODE, prefix });
  });

  test("the singular of an irregular plural comes from --one", () => {
    expect(namesOf({ feature: "staff", one: "staff-member", prefix: "stm" }, taken)).toMatchObject({ Record: "StaffMember", group: "staff", prefix: "stm" });
  });
});
