// A person in front of the frame: the rail, its menus, the bars of a phone.
import { accessFindings, type Chromium, type Visitor } from "../../kit/browser/chromium.ts";
import { layoutFindings } from "../../kit/browser/layout.ts";

export const PHONE = { viewport: { width: 390, height: 844 } };

export const openFrame =
  (chromium: Chromium, ownerId: string) =>
  async (path: string, options: Parameters<Chromium["visitor"]>[0] = {}): Promise<Visitor> => {
    const visitor = await chromium.visitor(options);
    await visitor.signIn(ownerId, { path });
    await visitor.page.getByRole("status").getByText("live", { exact: true }).waitFor();
    return visitor;
  };

/** The label or the text of what has the focus. */
export const focused = ({ page }: Pick<Visitor, "page">): Promise<string> =>
  page.evaluate<string>("document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent.trim()");

export const railOf = ({ page }: Visitor) => page.getByRole("navigation", { name: "Places" });

/** What is hard to use about an open menu or sheet, in light and dark. */
export const findings = async ({ page }: Pick<Visitor, "page">): Promise<readonly string[]> => {
  const found: string[] = [];
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    found.push(...(await accessFindings(page)), ...(await layoutFindings(page)));
  }
  return found;
};
