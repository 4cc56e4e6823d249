// The page's colors for what is drawn on a canvas, which CSS does not reach.

/** The color of a token such as `--good`, as it is now. */
export const colorOf = (token: string): string => {
  const probe = document.createElement("span");
  probe.style.color = `var(${token})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
};

const dark = matchMedia("(prefers-color-scheme: dark)");

/** Calls `redraw` when the colors change, by the system or by the page's switch. Returns what ends that. */
export const onColorChange = (redraw: () => void): (() => void) => {
  const observer = new MutationObserver(redraw);
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ["data-scheme"] });
  dark.addEventListener("change", redraw);
  return () => {
    observer.disconnect();
    dark.removeEventListener("change", redraw);
  };
};
