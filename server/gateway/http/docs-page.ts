// The page of the browsable documentation. It lists every operation at once, from the document alone, and hands Swagger UI one group at a time:
// Swagger UI resolves all references of what it is given before it shows anything, which takes many seconds for the whole document.

export const DOCS_PAGE = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Mooring API</title>
<link rel="icon" href="docs/favicon-32x32.png"><link rel="stylesheet" href="docs/swagger-ui.css"><link rel="stylesheet" href="docs/page.css"></head>
<body>
<nav aria-label="Operations"><h1>Mooring API</h1>
<label>Filter <input id="filter" type="search" placeholder="path, name or group" autocomplete="off"></label>
<p id="count" role="status"></p><div id="groups"></div></nav>
<main><p id="hint">Choose an operation. Its group opens here, with an example of each request to try.</p><div id="docs"></div></main>
<script src="docs/swagger-ui-bundle.js" defer></script><script type="module" src="docs/start.js"></script></body>
</html>`;

export const DOCS_STYLE = `body { margin: 0; display: grid; grid-template-columns: minmax(17rem, 24rem) 1fr; font: 15px/1.5 system-ui, sans-serif; color: #1d2733; background: #fff }
nav { position: sticky; top: 0; height: 100vh; overflow: auto; box-sizing: border-box; padding: 1rem; border-right: 1px solid #d5dbe3 }
nav h1 { margin: 0 0 .75rem; font-size: 1.25rem }
nav input { width: 100%; box-sizing: border-box; padding: .4rem .6rem; font: inherit }
nav details { border-top: 1px solid #e6eaef }
nav summary { padding: .4rem 0; font-weight: 600; cursor: pointer }
nav ul { margin: 0 0 .5rem; padding: 0; list-style: none }
nav a { display: block; padding: .2rem .4rem; border-radius: .25rem; color: inherit; text-decoration: none; overflow-wrap: anywhere }
nav a:hover, nav a[aria-current] { background: #e8eef6 }
nav code { display: block; font-size: .8125rem; color: #44546a }
main { min-width: 0; padding: 0 1rem }
#hint { padding: 1rem }
@media (max-width: 60rem) { body { display: block } nav { position: static; height: auto; max-height: 60vh; border-right: 0; border-bottom: 1px solid #d5dbe3 } }`;

// Sends requests to the origin of this page, because its policy allows no other; the document may name the gateway by another one.
export const DOCS_SCRIPT = `const description = await (await fetch("openapi.json")).json();
const servers = [{ url: new URL(".", location.href).pathname.replace(/\\/$/, "") }];
const METHODS = ["get", "post", "put", "patch", "delete"];
const operations = Object.entries(description.paths).flatMap(([path, item]) =>
  METHODS.filter((method) => method in item).map((method) => {
    const { tags: [tag], operationId, summary } = item[method];
    return { path, method, tag, operationId, summary, words: [tag, method + " " + path, operationId, summary].join("\\n").toLowerCase() };
  }));
const hashOf = ({ tag, operationId }) => "#/" + [tag, operationId].map(encodeURIComponent).join("/");

const subsetOf = (tag) => {
  const paths = {};
  for (const { path, method, tag: own } of operations) if (own === tag) (paths[path] ??= { parameters: description.paths[path].parameters })[method] = description.paths[path][method];
  const components = { securitySchemes: description.components.securitySchemes };
  const collect = (node) => {
    if (node === null || typeof node !== "object") return;
    for (const [key, value] of Object.entries(node)) {
      const [, kind, name] = key === "$ref" ? (/^#\\/components\\/(\\w+)\\/(.+)$/.exec(value) ?? []) : [];
      if (kind === undefined) collect(value);
      else if (!((components[kind] ??= {})[name])) collect((components[kind][name] = description.components[kind][name]));
    }
  };
  collect(paths);
  return { ...description, servers, paths, components, webhooks: undefined, tags: description.tags.filter(({ name }) => name === tag) };
};

const element = (name, properties, ...children) => {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
};
const listed = new Map();
const groups = description.tags.map(({ name, description: title }) => {
  const links = operations.filter(({ tag }) => tag === name).map((each) => {
    const link = element("a", { href: hashOf(each) }, each.summary, element("code", {}, each.method.toUpperCase() + " " + each.path));
    listed.set(link.hash, link);
    return { item: element("li", {}, link), words: each.words };
  });
  const details = element("details", {}, element("summary", { title }, name), element("ul", {}, ...links.map(({ item }) => item)));
  return { details, links };
});
document.getElementById("groups").append(...groups.map(({ details }) => details));

const filter = document.getElementById("filter");
const applyFilter = () => {
  const wanted = filter.value.trim().toLowerCase();
  let shown = 0;
  for (const { details, links } of groups) {
    let own = 0;
    for (const { item, words } of links) {
      item.hidden = !words.includes(wanted);
      if (!item.hidden) own += 1;
    }
    details.hidden = own === 0;
    details.open = wanted !== "" && own > 0;
    shown += own;
  }
  document.getElementById("count").textContent = shown + " of " + operations.length + " operations";
};
filter.addEventListener("input", applyFilter);
applyFilter();

let open;
const follow = () => {
  const [, tag] = location.hash.split("/").map(decodeURIComponent);
  if (!description.tags.some(({ name }) => name === tag)) return;
  document.querySelector("nav a[aria-current]")?.removeAttribute("aria-current");
  const link = listed.get(location.hash);
  link?.setAttribute("aria-current", "true");
  link?.closest("details").setAttribute("open", "");
  document.getElementById("hint").hidden = true;
  // Swagger UI follows links within its group by itself only when it starts.
  if (open === location.hash) return;
  open = location.hash;
  SwaggerUIBundle({
    spec: subsetOf(tag),
    dom_id: "#docs",
    deepLinking: true,
    docExpansion: "none",
    defaultModelsExpandDepth: -1,
    persistAuthorization: true,
    validatorUrl: null,
    tryItOutEnabled: true,
  });
};
addEventListener("hashchange", follow);
follow();`;
