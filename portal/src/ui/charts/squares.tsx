// A square for each member of a fleet, in groups, trouble first. Up to a thousand are links, one stop of the Tab key that the arrows move in;
// more are drawn, and the head of each group leads to the same ones as a list.
import { type KeyboardEvent, type MouseEvent, memo, type ReactNode, useState } from "react";
import { numbers } from "../count.ts";
import type { Tone } from "../status.tsx";
import { type Square, SquareField } from "./square-field.tsx";
import css from "./squares.module.css";

export interface SquareGroup {
  readonly id: string;
  /** A link to the list of its members, where there is one. */
  readonly head: ReactNode;
  readonly name: string;
  readonly squares: readonly Square[];
}

export interface SquaresProps {
  readonly label: string;
  readonly groups: readonly SquareGroup[];
  readonly href: (id: string) => string;
  readonly onOpen: (id: string) => void;
}

const MAX_LINKS = 1_000;
const BY_TROUBLE: readonly Tone[] = ["bad", "warn", "busy", "good", "idle"];

const troubleOf = ({ tone }: Square): number => BY_TROUBLE.indexOf(tone);
const sorted = ({ squares }: SquareGroup): readonly Square[] => squares.toSorted((a, b) => troubleOf(a) - troubleOf(b) || a.name.localeCompare(b.name));

interface Count {
  readonly tone: Tone;
  readonly count: number;
}
const countsOf = (squares: readonly Square[]): ReadonlyMap<string, Count> => {
  const counts = new Map<string, Count>();
  for (const { word, tone } of squares.toSorted((a, b) => troubleOf(a) - troubleOf(b))) counts.set(word, { tone, count: (counts.get(word)?.count ?? 0) + 1 });
  return counts;
};
const sentenceOf = (squares: readonly Square[]): string => [...countsOf(squares)].map(([word, { count }]) => `${numbers.format(count)} ${word}`).join(", ");

interface OneProps {
  readonly square: Square;
  readonly href: string;
  readonly isStop: boolean;
}
// The other hundreds stay as they are when one of them changes.
const One = memo(({ square: { id, name, word, tone }, href, isStop }: OneProps) => (
  // biome-ignore lint/a11y/useAnchorContent: its label names it
  <a
    className={css["square"]}
    data-tone={tone}
    data-id={id}
    href={href}
    tabIndex={isStop ? 0 : -1}
    title={`${name}, ${word}`}
    aria-label={`${name}, ${word}`}
  />
));

/** The link that a key leads to. Up and down find the nearest one in the next row. */
const next = (key: string, from: HTMLElement, all: readonly HTMLElement[]): HTMLElement | undefined => {
  const at = all.indexOf(from);
  const one: Readonly<Record<string, number>> = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: all.length - 1 };
  const target = one[key];
  if (target !== undefined) return all[target];
  if (key !== "ArrowDown" && key !== "ArrowUp") return undefined;
  const here = from.getBoundingClientRect();
  const ahead = (key === "ArrowDown" ? all.slice(at + 1) : all.slice(0, at).reverse()).map((link) => ({ link, box: link.getBoundingClientRect() }));
  const row = ahead.find(({ box }) => box.top !== here.top)?.box.top;
  const distance = ({ left }: DOMRect): number => Math.abs(left - here.left);
  return ahead.filter(({ box }) => box.top === row).toSorted((a, b) => distance(a.box) - distance(b.box))[0]?.link;
};

const idOf = (target: EventTarget): string | undefined => (target instanceof HTMLElement ? target.dataset["id"] : undefined);

export const Squares = ({ label, groups, href, onOpen }: SquaresProps) => {
  const [stop, setStop] = useState<string | null>(null);
  const all = groups.flatMap(({ squares }) => squares);
  const isDrawn = all.length > MAX_LINKS;
  const ordered = groups.map((group) => ({ ...group, squares: sorted(group) }));
  const current = all.some(({ id }) => id === stop) ? stop : ordered[0]?.squares[0]?.id;
  const click = (event: MouseEvent): void => {
    const id = idOf(event.target);
    if (id === undefined || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    onOpen(id);
  };
  const press = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.target instanceof HTMLElement) || idOf(event.target) === undefined) return;
    const to = next(event.key, event.target, [...event.currentTarget.querySelectorAll<HTMLElement>("a[data-id]")]);
    if (to === undefined) return;
    event.preventDefault();
    to.focus();
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: not part of a form
    <div className={css["squares"]} role="group" aria-label={label} onClick={click} onKeyDown={press} onFocus={({ target }) => setStop(idOf(target) ?? stop)}>
      <div className={css["groups"]}>
        {ordered.map(({ id, head, name, squares }) => (
          <div key={id} className={css["group"]}>
            <div className={css["head"]}>
              {head} <span className="muted">{sentenceOf(squares)}</span>
            </div>
            {isDrawn ? (
              <SquareField label={`${name}: ${sentenceOf(squares)}`} squares={squares} onOpen={onOpen} />
            ) : (
              <div className={css["links"]}>
                {squares.map((square) => (
                  <One key={square.id} square={square} href={href(square.id)} isStop={square.id === current} />
                ))}
              </div>
            )}
          </div>
        ))}
      </div>
      <div className={css["legend"]}>
        {[...countsOf(all)].map(([word, { tone }]) => (
          <span key={word} className={css["entry"]}>
            <span className={css["square"]} data-tone={tone} /> {word}
          </span>
        ))}
      </div>
    </div>
  );
};
