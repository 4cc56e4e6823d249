// The policy of the console's pages in a real browser, and that the tests' browser notices each kind of fault.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { accessFindings, type Chromium, openChromium, type Visitor } from "../../kit/browser/chromium.ts";
import { makeConsoleFolder } from "../../kit/browser/console-folder.ts";
import { layoutFindings } from "../../kit/browser/layout.ts";
import type { Problem } from "../../kit/browser/seat.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { startWorld, type World } from "../../kit/gateway/world.ts";

const page = (head: string, body = ""): string =>
  `<!doctype html><html lang="en"><head><title>Page</title><link rel="icon" href="/favicon.svg">${head}</head><body><main><h1>Page</h1>${body}</main></body></html>`;
const script = (name: string, text: string) => ({ [`${name}.html`]: page(`<script type="module" src="/${name}.js"></script>`), [`${name}.js`]: text });
const FAULTY = {
  "inline-script.html": page("<script>document.title = 'inline'</script>"),
  "inline-style.html": page("<style>h1 { color: red }</style>"),
  "elsewhere.html": page("", '<img alt="" src="http://127.0.0.2/x.png">'),
  ...script("style-element", "document.head.append(Object.assign(document.createElement('style'), { textContent: 'h1 { color: red }' }))"),
  ...script("html-string", "document.querySelector('main').innerHTML = '<p>from a string</p>'"),
  ...script("connects-out", "await fetch('http://127.0.0.2/').catch(() => undefined)"),
  ...script("throws", "throw new Error('on purpose')"),
  ...script("complains", "console.error('on purpose')"),
  ...script("calls-nothing", "await fetch('/v1/nowhere')"),
  ...script("shows", "document.querySelector('h1').style.color = 'rgb(1, 2, 3)'; document.title = 'shown'"),
  "bad-picture.html": page("", `<img src="/favicon.svg"><pre>${"wide ".repeat(400)}</pre>`),
  // The rail that the console had on phones: all places in one line.
  ...script(
    "sideways-rail",
    `const rail = document.createElement("nav");
    Object.assign(rail.style, { display: "flex", overflowX: "auto" });
    for (let at = 0; at < 40; at += 1) rail.append(Object.assign(document.createElement("a"), { href: "/" + at, textContent: "Place-" + at }));
    document.querySelector("main").append(rail);
    document.title = "shown";`,
  ),
  ...script(
    "hidden-controls",
    `const box = document.createElement("div");
    Object.assign(box.style, { width: "60px", height: "20px", overflow: "hidden", position: "relative" });
    const cut = Object.assign(document.createElement("button"), { textContent: "A long button that is cut" });
    cut.style.whiteSpace = "nowrap";
    box.append(cut);
    const below = Object.assign(document.createElement("button"), { textContent: "Below" });
    const over = Object.assign(document.createElement("div"), { textContent: "Over" });
    Object.assign(over.style, { position: "relative", top: "-30px", height: "40px", background: "white" });
    document.querySelector("main").append(box, below, over);
    document.title = "shown";`,
  ),
};

// A gateway of its own: it serves pages with faults.
let world: World;
let chromium: Chromium;
let made: Awaited<ReturnType<typeof makeConsoleFolder>>;
let visitor: Visitor;
beforeAll(async () => {
  made = await makeConsoleFolder(FAULTY);
  world = await startWorld({ CONSOLE: "on" }, { settings: { consoleFolder: made.folder } });
  chromium = await openChromium(world);
}, 60_000);
afterAll(async () => {
  await chromium?.close();
  await world?.close();
  await made.remove();
});

const open = async (path: string) => {
  visitor = await chromium.visitor();
  await visitor.page.goto(path);
  return visitor;
};
const kindsOf = (problems: readonly Problem[]) => problems.map(({ kind }) => kind);
const POLICED: readonly (readonly [string, string])[] = [
  ["/inline-script.html", "script-src-elem inline"],
  ["/inline-style.html", "style-src-elem inline"],
  ["/elsewhere.html", "img-src http://127.0.0.2/x.png"],
  ["/style-element.html", "style-src-elem inline"],
  ["/html-string.html", "require-trusted-types-for trusted-types-sink"],
  ["/connects-out.html", "connect-src http://127.0.0.2/"],
];

describe("a page of the console", () => {
  test("loads its module and styles what it shows without a complaint", async () => {
    const { page: shown, problems, close } = await open("/shows.html");
    await eventually(async () => expect(await shown.title()).toBe("shown"));
    expect(await shown.evaluate("getComputedStyle(document.querySelector('h1')).color")).toBe("rgb(1, 2, 3)");
    expect(problems).toEqual([]);
    await close();
  });

  test.each(POLICED)("%s may not do what it tries", async (path, violation) => {
    const { problems, close } = await open(path);
    await eventually(() => expect(problems.map(({ kind, text }) => `${kind} ${text}`)).toContainEqual(expect.stringContaining(`policy ${violation} `)));
    await close();
  });

  test("a sign-in link leads a browser to the page that it should see, signed in", async () => {
    const { page: shown, context, problems, signIn, close } = await open("/");
    await signIn("ann", { path: "/devices?q=tag%3Aeu" });
    expect(shown.url()).toBe(`${world.url}/devices?q=tag%3Aeu`);
    expect((await context.cookies()).map(({ name }) => name).sort()).toEqual(["mooring_csrf", "mooring_session"]);
    expect(problems).toEqual([]);
    await close();
  });

  test("a used link shows the person a page with the reason in its address", async () => {
    const { url } = await world.app.signInLink({ userId: "ann" });
    const { page: shown, close } = await open(url);
    expect(shown.url()).toBe(`${world.url}/`);
    await shown.goto(url);
    expect(new URL(shown.url()).pathname).toBe("/sign-in");
    expect(shown.url()).toContain("error=SIGN_IN_FAILED&reason=link_invalid");
    await close();
  });
});

describe("the tests' browser", () => {
  test.each([
    ["/throws.html", ["error"]],
    ["/complains.html", ["console"]],
    ["/calls-nothing.html", ["answer"]],
  ])("notices the fault of %s", async (path, kinds) => {
    const { problems, close } = await open(path);
    await eventually(() => expect(kindsOf(problems)).toEqual(kinds));
    await close();
  });

  test("notices a fault on a second page of the same visitor", async () => {
    const { context, problems, close } = await open("/");
    await (await context.newPage()).goto("/throws.html");
    await eventually(() => expect(kindsOf(problems)).toEqual(["error"]));
    await close();
  });

  test("finds a picture without words and a page that is too wide, and nothing on a good page", async () => {
    const bad = await open("/bad-picture.html");
    expect(await accessFindings(bad.page)).toEqual([expect.stringMatching(/^image-alt: img /)]);
    expect(await layoutFindings(bad.page)).toEqual(["the document scrolls sideways"]);
    expect(kindsOf(bad.problems)).toEqual([]);
    await bad.close();
    const good = await open("/shows.html");
    expect([await accessFindings(good.page), await layoutFindings(good.page)]).toEqual([[], []]);
    await good.close();
  });

  test("finds a rail that scrolls sideways, a button that is cut and one that is covered", async () => {
    const rail = await open("/sideways-rail.html");
    await eventually(async () => expect(await rail.page.title()).toBe("shown"));
    expect(await layoutFindings(rail.page)).toContainEqual(expect.stringMatching(/^nav .* scrolls sideways$/));
    await rail.close();
    const hidden = await open("/hidden-controls.html");
    await eventually(async () => expect(await hidden.page.title()).toBe("shown"));
    expect(await layoutFindings(hidden.page)).toEqual([
      expect.stringMatching(/^button 'A long button that is cut' is cut by div/),
      expect.stringMatching(/^button 'Below' is covered by div 'Over'$/),
    ]);
    await hidden.close();
  });

  test("visitors do not share a session", async () => {
    const [ann, bea] = [await open("/"), await chromium.visitor()];
    await ann.signIn("ann");
    expect(await bea.context.cookies()).toEqual([]);
    await Promise.all([ann.close(), bea.close()]);
  });
});
