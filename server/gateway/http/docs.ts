// Browsable documentation: Swagger UI's own files from its npm package, with our document. The page loads nothing from other hosts.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { DOCS_PAGE, DOCS_SCRIPT, DOCS_STYLE } from "./docs-page.ts";
import type { HttpResponse } from "./http-message.ts";

const FILES: ReadonlyMap<string, string> = new Map([
  ["swagger-ui.css", "text/css; charset=utf-8"],
  ["swagger-ui-bundle.js", "text/javascript; charset=utf-8"],
  ["favicon-32x32.png", "image/png"],
]);

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
    if (name === "") return page("text/html; charset=utf-8", DOCS_PAGE);
    if (name === "start.js") return page("text/javascript; charset=utf-8", DOCS_SCRIPT);
    if (name === "page.css") return page("text/css; charset=utf-8", DOCS_STYLE);
    const type = FILES.get(name);
    return type === undefined ? null : page(type, await readFile(join(folder, name)));
  };
};
