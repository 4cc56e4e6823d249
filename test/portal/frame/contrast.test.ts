// Whether the console's colors can be told apart, computed from its tokens.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const CSS = readFileSync(fileURLToPath(new URL("../../../portal/src/app/tokens.css", import.meta.url)), "utf8");
const SCHEMES = ["light", "dark"] as const;
type Scheme = (typeof SCHEMES)[number];

/** The tokens that are one opaque color for each scheme. */
const TOKENS = new Map(
  [...CSS.matchAll(/--([\w-]+): (?:light-dark\((#[\da-f]{6}), (#[\da-f]{6})\)|(#[\da-f]{6}));/g)].map(([, name = "", light, dark, both = ""]) => [
    name,
    { light: light ?? both, dark: dark ?? both },
  ]),
);

const colorOf = (name: string, scheme: Scheme): string => {
  const found = TOKENS.get(name)?.[scheme];
  if (found === undefined) throw new Error(`there is no color --${name}`);
  return found;
};
/** WCAG 2.2: relative luminance and contrast ratio. */
const luminanceOf = (color: string): number => {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5]
    .map((at) => Number.parseInt(color.slice(at, at + 2), 16) / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};
const contrastOf = (one: string, other: string): number => {
  const [light = 0, dark = 0] = [luminanceOf(one), luminanceOf(other)].sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
};

/** What text stands on. */
const GROUNDS = ["canvas", "surface", "raised", "rail", "hover", "selected"] as const;
const INKS = ["text", "muted", "faint", "accent", "good", "warn", "bad", "busy"] as const;
const PAIRS: readonly (readonly [ink: string, grounds: readonly string[], least: number])[] = [
  ...INKS.map((ink) => [ink, GROUNDS, 4.5] as const),
  ...["good", "warn", "bad", "busy"].map((tone) => [tone, [`${tone}-soft`], 4.5] as const),
  ["on-fill", ["fill", "fill-hover"], 4.5],
  ["text", ["avatar", "sunken"], 4.5],
  ["edge", ["canvas", "surface", "raised", "rail", "hover"], 3],
];

describe.each(SCHEMES)("in %s colors", (scheme) => {
  test.each(PAIRS)("%s on %j has a contrast of at least the given", (ink, grounds, least) => {
    const weak = grounds.filter((ground) => contrastOf(colorOf(ink, scheme), colorOf(ground, scheme)) < least);
    expect(weak.map((ground) => `${ink} on ${ground}: ${contrastOf(colorOf(ink, scheme), colorOf(ground, scheme)).toFixed(2)}`)).toEqual([]);
  });
});

test("the computation knows black on white and two grays that are too close", () => {
  expect(contrastOf("#000000", "#ffffff")).toBeCloseTo(21, 5);
  expect(contrastOf("#777777", "#ffffff")).toBeLessThan(4.5);
});
