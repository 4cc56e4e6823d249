// Where the marks of a chart's axes stand, and what they say.

const MINUTE = 60;
const HOUR = 3_600;
const DAY = 86_400;
/** Distances of marks in time that people count in. */
const TIME_STEPS = [1, 5, 10, 15, 30, MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY];

const formats = {
  seconds: new Intl.DateTimeFormat(undefined, { minute: "2-digit", second: "2-digit" }),
  minutes: new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" }),
  days: new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" }),
};
const figures = new Intl.NumberFormat(undefined, { notation: "compact" });

export interface Mark {
  readonly at: number;
  readonly word: string;
}

const marksBetween = (from: number, to: number, step: number): readonly number[] => {
  const first = Math.ceil(from / step) * step;
  return Array.from({ length: Math.max(0, Math.floor((to - first) / step) + 1) }, (_, nth) => first + nth * step);
};

/** Marks of the times between two moments, in seconds: at most so many. */
export const timeMarks = (from: number, to: number, most: number): readonly Mark[] => {
  const step = TIME_STEPS.find((each) => (to - from) / each <= most) ?? Math.ceil((to - from) / most / DAY) * DAY;
  const format = step < MINUTE ? formats.seconds : step < DAY ? formats.minutes : formats.days;
  // Days and hours of the person, not of Greenwich.
  const shift = new Date(from * 1_000).getTimezoneOffset() * MINUTE;
  return marksBetween(from - shift, to - shift, step).map((at) => ({ at: at + shift, word: format.format((at + shift) * 1_000) }));
};

/** Marks of figures from zero to the highest: whole ones, at steps of 1, 2 or 5 times a power of ten. */
export const figureMarks = (highest: number, most: number): readonly Mark[] => {
  const power = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, highest / most))));
  const step = [1, 2, 5, 10].map((times) => times * power).find((each) => highest / each <= most) ?? 10 * power;
  return marksBetween(0, highest, step).map((at) => ({ at, word: figures.format(at) }));
};
