// Builds the console into dist/portal, and serves it for `npm run portal` beside a running gateway.
import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
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
  },
  server: { host: "127.0.0.1", proxy: { "/trpc": GATEWAY, "/v1": GATEWAY } },
});
