// Builds the console into dist/portal, and serves it for `npm run portal` beside a running gateway.
import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";
import { icons } from "./icons-plugin.ts";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
/** What lists, details and forms are made of, beyond what the first screen needs. */
const PARTS =
  /portal\/src\/(?:ui\/(?:detail-page|menu-items|fields\/(?:checks|pick-field|seconds-field|time-zone-field)|edition|save-file|secret-once|since|split|timeline|value)|parts\/selector-field)\.(?:tsx?|module\.css)$/;
/** What every list is made of. */
const LISTS = /portal\/src\/ui\/list\/(?!bulk-bar)/;
/** What the frame shows when somebody asks for it. */
const FRAME =
  /portal\/src\/app\/(?:palette|place-name|keys|session-ended|no-tenant|no-permission|shell\/(?:more-sheet|menu-contents|narrow-settings))\b|portal\/src\/parts\/create-tenant/;
/** What lists show when somebody asks for it: views, and what is done with several rows. */
const ASKED = /portal\/src\/(?:parts\/(?:view-dialog|no-match|bulk)|ui\/list\/bulk-bar|screens\/devices\/bulk)\b/;
/** Words that the first screens share. */
const WORDS = /portal\/src\/ui\/(?:count|device-label)\.ts$/;
/** The page itself names these files, so no screen has to ask for them once more. */
const AT_ONCE = /^assets\/(?:icon|suspense|useRouter|link|time|client|preload-helper|first-words)-/;
/** Without this statement, which counts nothing here, tRPC's connection over WebSocket is left out, as all else that nobody imports. */
const COUNTER = '_defineProperty(WsConnection, "connectCount", 0);';
const withoutSockets: Plugin = { name: "without-sockets", transform: (code, id) => (id.includes("@trpc/client/") ? code.replace(COUNTER, "") : null) };
/** What is shown of an app, wherever one is. */
const APP = /portal\/src\/(?:parts\/(?:apps\/app-(?:columns|status|text|failure|steps)|resource-link)|ui\/app-tile)\b/;
/** What apps and devices show of backups and volumes. */
const BACKUPS = /portal\/src\/parts\/(?:backups|volumes)\//;
/** What apps, devices and the network show of tunnels and mesh routes. */
const NETWORK = /portal\/src\/parts\/network\//;
/** The libraries, most of which the first screen needs: one file is smaller than its parts, and a release that changes none leaves it in the browser's cache. */
const LIBRARY = /node_modules\/(?:preact|use-sync-external-store|@tanstack|@trpc)\//;
/** The screens of an area come together; what its address means is known before. Few people come to a deployment without an app. */
const AREA = /portal\/src\/screens\/(?!overview|devices)([\w-]+)\/(?!search|deployment\b)/;
/** Docs: docs/decisions/0015-the-console-runs-on-preact.md. The longer names first: an alias also stands for what begins with it. */
const PREACT = { "react/jsx-runtime": "preact/jsx-runtime", "react-dom/client": "preact/compat/client", "react-dom": "preact/compat", react: "preact/compat" };
const GATEWAY = "http://127.0.0.1:8080";

export default defineConfig({
  root: here("."),
  plugins: [react(), icons(), withoutSockets],
  resolve: { alias: { ...PREACT, "@mooring/client": here("../protocol/client/index.ts") } },
  build: {
    outDir: here("../dist/portal"),
    emptyOutDir: true,
    target: "es2023",
    // The policy allows neither `data:` URLs nor an inline script.
    assetsInlineLimit: 0,
    modulePreload: {
      polyfill: false,
      resolveDependencies: (_, files, { hostType }) => (hostType === "html" ? files : files.filter((file) => !AT_ONCE.test(file))),
    },
    reportCompressedSize: false,
    // One small file is smaller than its parts: lists, details and forms, which every area needs a few of.
    rolldownOptions: {
      output: {
        codeSplitting: {
          includeDependenciesRecursively: false,
          groups: [
            { name: "library", test: LIBRARY },
            { name: "parts", test: PARTS },
            { name: "lists", test: LISTS },
            { name: "frame", test: FRAME },
            { name: "asked", test: ASKED },
            { name: "first-words", test: WORDS },
            { name: "app-parts", test: APP },
            { name: "backup-parts", test: BACKUPS },
            { name: "network-parts", test: NETWORK },
            { name: (id: string) => AREA.exec(id)?.[1] ?? null, test: AREA },
          ],
        },
      },
    },
  },
  server: { host: "127.0.0.1", proxy: { "/trpc": GATEWAY, "/v1": GATEWAY } },
});
