// The console as the build leaves it: what a browser gets is whole, named after its content, and content with the policy.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { openConsole } from "../../kit/browser/console.ts";

const FOLDER = fileURLToPath(new URL("../../../dist/portal", import.meta.url));
const names = readdirSync(FOLDER, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath, entry.name).slice(FOLDER.length + 1));
const read = (name: string): Buffer => readFileSync(join(FOLDER, name));
const isForm = (name: string): boolean => /\.(?:br|gz)$/.test(name);

const { world, chromium } = await openConsole();

describe("the built files", () => {
  test("each text above a kilobyte has both compressed forms, which hold the same and take less", () => {
    const texts = names.filter((name) => /\.(?:html|js|css|svg)$/.test(name) && read(name).length >= 1_024);
    expect(texts.length).toBeGreaterThan(2);
    for (const name of texts) {
      expect([name, brotliDecompressSync(read(`${name}.br`)).equals(read(name)), gunzipSync(read(`${name}.gz`)).equals(read(name))]).toEqual([
        name,
        true,
        true,
      ]);
      expect(read(`${name}.br`).length).toBeLessThan(read(name).length);
    }
    expect(names.filter((name) => isForm(name) && !texts.includes(name.slice(0, -3)))).toEqual([]);
  });

  test("only the page and its icon have names that stay", () => {
    expect(names.filter((name) => !isForm(name) && !/^assets\/.+-[\w-]{8}\.\w+$/.test(name)).sort()).toEqual(["icon.svg", "index.html"]);
  });

  test("nothing is inline", () => {
    expect(read("index.html").toString()).not.toMatch(/<style|<script(?![^>]*\bsrc=)|\bstyle=|\bon\w+=|data:/);
  });
});

describe("the console in a browser", () => {
  test("a person who follows a link gets it without any complaint in light and dark colours", async () => {
    const tenant = await world.tenant();
    const { page, problems, signIn, close } = await chromium.visitor();
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      await signIn(tenant.ownerId, { tenantId: tenant.tenantId, path: "/devices" });
      await page.getByRole("navigation").first().waitFor();
      expect(new URL(page.url()).pathname).toBe("/devices");
    }
    expect(problems).toEqual([]);
    await close();
  });

  test("whoever is not signed in learns how to", async () => {
    const { page, problems, close } = await chromium.visitor();
    await page.goto("/devices");
    await page.getByRole("heading", { name: /sign in/i }).waitFor();
    expect(problems.filter(({ kind }) => kind !== "answer")).toEqual([]);
    await close();
  });
});
