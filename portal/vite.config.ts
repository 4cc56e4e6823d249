// Builds the console into dist/portal, and serves it for `npm run portal` beside a running gateway.
import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
/** What lists, details and forms are made of, beyond what the first screen needs. */
const PARTS =
  /portal\/src\/(?:ui\/(?:fields\/(?:checks|pick-field|seconds-field|time-zone-field)|edition|save-file|secret-once|since|split|tabs|timeline|value)|parts\/selector-field)\.tsx?$/;
/** What every list is made of, with the library that draws only the rows in sight. */
const LISTS = /portal\/src\/ui\/(?:table|filtered-list|filter-bar)\b|@tanstack\/(?:react-virtual|virtual-core)\//;
/** Words that the first screens share. */
const WORDS = /portal\/src\/ui\/(?:count|device-label)\.ts$/;
const GATEWAY = "http://127.0.0.1:8080";

export default defineConfig({
  root: here("."),
  plugins: [react()],
  resolve: { alias: { "@mooring/client": here("../protocol/client/index.ts") } },
  build: {
    outDir: here("../dist/portal"),
    emptyOutDir: true,
    target: "es2023",
    // The policy allows neither `data:` URLs nor an inline script.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // One small file is smaller than its forty parts, and has its layers in order.
    cssCodeSplit: false,
    // So are the parts of lists, details and forms, which every area needs a few of.
    rolldownOptions: {
      output: {
        codeSplitting: {
          includeDependenciesRecursively: false,
          groups: [
            { name: "parts", test: PARTS },
            { name: "lists", test: LISTS },
            { name: "words", test: WORDS },
          ],
        },
      },
    },
  },
  server: { host: "127.0.0.1", proxy: { "/trpc": GATEWAY, "/v1": GATEWAY } },
});
