// What is out of reach on a page: containers that scroll sideways, and controls that are cut off or covered.
import type { Page } from "playwright-core";

/** Only these may scroll sideways: strips of tabs, chips, code. */
const MAY_SCROLL = "[data-strip], [data-chips], pre, pre *";
const CONTROLS = "a[href], button, input, select, textarea, summary, [role=option], [role^=menuitem]";

/** Runs in the page, so it is a text: the tests are compiled without the browser's types. */
const LOOK = `(() => {
  const found = [];
  const nameOf = (element) => {
    const words = element.getAttribute("aria-label") ?? element.textContent.trim().slice(0, 30);
    return element.tagName.toLowerCase() + (element.getAttribute("role") ? "[" + element.getAttribute("role") + "]" : "") + (words ? " '" + words + "'" : "");
  };
  const mayScroll = (element) => element.matches(${JSON.stringify(MAY_SCROLL)});
  const isShown = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && element.closest(".out-of-sight") === null;
  if (document.documentElement.scrollWidth > innerWidth) found.push("the document scrolls sideways");
  for (const element of document.querySelectorAll("body *")) {
    const { overflowX } = getComputedStyle(element);
    if ((overflowX === "auto" || overflowX === "scroll") && element.scrollWidth > element.clientWidth + 1 && isShown(element) && !mayScroll(element))
      found.push(nameOf(element) + " scrolls sideways");
  }
  /** Whether the control is a link in a text that ends with an ellipsis, and enough of it is left to choose it. */
  const isShortened = (control, box) => {
    if (getComputedStyle(control).display !== "inline") return false;
    for (let up = control.parentElement; up !== null; up = up.parentElement)
      if (getComputedStyle(up).textOverflow === "ellipsis") return box.left < up.getBoundingClientRect().right - 24;
    return false;
  };
  /** The first ancestor that hides a part of the control, and whether it does so sideways. */
  const cutBy = (control, box) => {
    for (let up = control.parentElement; up !== null && up !== document.body; up = up.parentElement) {
      if (up.matches("dialog, [popover]")) break;
      const { overflowX, overflowY, position } = getComputedStyle(up);
      const around = up.getBoundingClientRect();
      if (mayScroll(up)) return null;
      if (overflowX !== "visible" && (box.left < around.left - 1 || box.right > around.right + 1)) return up;
      if (/hidden|clip/.test(overflowY) && (box.top < around.top - 1 || box.bottom > around.bottom + 1)) return up;
      if (position === "fixed") break;
    }
    return null;
  };
  /** What a person would hit in place of the control. */
  const coverOf = (control) => {
    const box = control.getBoundingClientRect();
    const top = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
    return top === null || control.contains(top) || top.contains(control) ? null : top;
  };
  const modal = [...document.querySelectorAll("dialog[open]")].at(-1);
  const popover = document.querySelector(":popover-open");
  for (const control of (popover ?? modal ?? document).querySelectorAll(${JSON.stringify(CONTROLS)})) {
    const box = control.getBoundingClientRect();
    if (!isShown(control) || box.width === 0 || box.height === 0) continue;
    if (isShortened(control, box)) continue;
    const strip = control.closest(${JSON.stringify(MAY_SCROLL)});
    if (strip === null && (box.left < -1 || box.right > innerWidth + 1)) found.push(nameOf(control) + " reaches beyond the window");
    const cut = cutBy(control, box);
    if (cut !== null) found.push(nameOf(control) + " is cut by " + nameOf(cut));
    const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
    const inSight = (up) => {
      const around = up.getBoundingClientRect();
      return x > around.left && x < around.right && y > around.top && y < around.bottom;
    };
    let isInSight = x > 0 && x < innerWidth && y > 0 && y < innerHeight;
    for (let up = control.parentElement; up !== null && up !== document.body && isInSight; up = up.parentElement)
      if (getComputedStyle(up).overflowY !== "visible" || getComputedStyle(up).overflowX !== "visible") isInSight = inSight(up);
    if (!isInSight || getComputedStyle(control).pointerEvents === "none") continue;
    if (coverOf(control) === null) continue;
    // A bar at the window's edge covers what is scrolled under it, and uncovers it when a person scrolls on.
    const [left, above] = [scrollX, scrollY];
    control.scrollIntoView({ block: "center", behavior: "instant" });
    const cover = coverOf(control);
    scrollTo({ left, top: above, behavior: "instant" });
    if (cover !== null) found.push(nameOf(control) + " is covered by " + nameOf(cover));
  }
  return found;
})()`;

export const layoutFindings = (page: Page): Promise<readonly string[]> => page.evaluate<readonly string[]>(LOOK);
