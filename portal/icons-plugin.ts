// Writes the icons that `src/ui/icon-names.ts` lists into two files, and those of applications into a third one, each named after its content: a browser
// keeps them for good.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Plugin } from "vite";
import { APP_ICONS } from "../protocol/records/apps/app-picture.ts";
import { ICONS, PAGE_ICONS } from "./src/ui/icon-names.ts";

const drawingOf = (name: string): string => {
  const file = readFileSync(fileURLToPath(import.meta.resolve(`lucide-static/icons/${name}.svg`)), "utf8");
  const inner = /<svg[^>]*>([\s\S]*)<\/svg>/.exec(file)?.[1];
  if (inner === undefined) throw new Error(`lucide-static has no drawing in ${name}.svg`);
  return inner.trim().replaceAll(/\s+/g, " ").replaceAll(" />", "/>").replaceAll("> <", "><");
};

const fileOf = (word: string, drawings: Readonly<Record<string, string>>) => {
  const symbols = Object.entries(drawings).map(([name, drawing]) => `<symbol id="${name}" viewBox="0 0 24 24">${drawingOf(drawing)}</symbol>`);
  const source = `<svg xmlns="http://www.w3.org/2000/svg"><!-- Lucide, ISC -->${symbols.join("")}</svg>\n`;
  return { fileName: `assets/${word}-${createHash("sha256").update(source).digest("hex").slice(0, 8)}.svg`, source };
};

export const icons = (): Plugin => {
  const frame = fileOf("icons", ICONS);
  const page = fileOf("page-icons", PAGE_ICONS);
  const app = fileOf("app-icons", Object.fromEntries(APP_ICONS.map((name) => [name, name])));
  const files = [frame, page, app];
  const [__ICONS__, __PAGE_ICONS__, __APP_ICONS__] = files.map(({ fileName }) => JSON.stringify(`/${fileName}`));
  return {
    name: "icons",
    config: () => ({ define: { __ICONS__, __PAGE_ICONS__, __APP_ICONS__ } }),
    generateBundle() {
      for (const file of files) this.emitFile({ type: "asset", ...file });
    },
    // For `npm run portal`, which writes no files.
    configureServer: ({ middlewares }) => {
      for (const { fileName, source } of files)
        middlewares.use(`/${fileName}`, (_request, answer) => {
          answer.setHeader("content-type", "image/svg+xml");
          answer.end(source);
        });
    },
  };
};
