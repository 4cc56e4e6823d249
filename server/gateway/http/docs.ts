// Browsable documentation: Swagger UI's own files from its npm package, with our document. The page loads nothing from other hosts.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import type { HttpResponse } from "./request-context.ts";

const FILES: ReadonlyMap<string, string> = new Map([
  ["swagger-ui.css", "text/css; charset=utf-8"],
  ["swagger-ui-bundle.js", "text/javascript; charset=utf-8"],
  ["favicon-32x32.png", "image/png"],
]);

const PAGE = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Mooring API</title>
<link rel="icon" href="docs/favicon-32x32.png"><link rel="stylesheet" href="docs/swagger-ui.css"></head>
<body><div id="docs"></div><script src="docs/swagger-ui-bundle.js"></script><script type="module" src="docs/start.js"></script></body>
</html>`;
// Sends requests to the origin of this page, because the policy below allows no other; the document may name the gateway by another one.
const START = `const description = await (await fetch("openapi.json")).json();
SwaggerUIBundle({
  spec: { ...description, servers: [{ url: new URL(".", location.href).pathname.replace(/\\/$/, "") }] },
  dom_id: "#docs",
  deepLinking: true,
  persistAuthorization: true,
  validatorUrl: null,
  tryItOutEnabled: true,
});`;

const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'";

const page = (type: string, body: string | Uint8Array): HttpResponse => ({
  status: 200,
  body,
  compress: !type.startsWith("image/"),
  headers: { "Content-Type": type, "Content-Security-Policy": CSP, "X-Content-Type-Options": "nosniff", "Cache-Control": "public, max-age=3600" },
});

/** Serves `docs` and the files below it; null for an unknown name. */
export const createDocs = () => {
  const folder = dirname(createRequire(import.meta.url).resolve("swagger-ui-dist/package.json"));
  return async (name: string): Promise<HttpResponse | null> => {
    if (name === "") return page("text/html; charset=utf-8", PAGE);
    if (name === "start.js") return page("text/javascript; charset=utf-8", START);
    const type = FILES.get(name);
    return type === undefined ? null : page(type, await readFile(join(folder, name)));
  };
};
