// Builds the console into dist/portal, and serves it for `npm run portal` beside a running gateway.
import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const GATEWAY = "http://127.0.0.1:8080";

/** Whichever style sheet a browser reads first, it learns the order of the layers: the build leaves the statement out of all but one. */
const layersInOrder: Plugin = {
  name: "layers-in-order",
  generateBundle: (_options, bundle) => {
    for (const file of Object.values(bundle)) if (file.type === "asset" && file.fileName.endsWith(".css")) file.source = `@layer base,parts;${file.source}`;
  },
};

export default defineConfig({
  root: here("."),
  plugins: [react(), layersInOrder],
  resolve: { alias: { "@mooring/client": here("../protocol/client/index.ts") } },
  build: {
    outDir: here("../dist/portal"),
    emptyOutDir: true,
    target: "es2023",
    // The policy allows neither `data:` URLs nor an inline script.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: { host: "127.0.0.1", proxy: { "/trpc": GATEWAY, "/v1": GATEWAY } },
});
