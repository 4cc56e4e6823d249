// Which rows of a list of any length are in sight, so that only these are drawn. All rows are equally high.
import { type RefObject, useCallback, useLayoutEffect, useState } from "react";

/** Rows drawn beyond those in sight, on each side. */
const BEYOND = 8;
/** Before the frame has been measured. */
const NOTHING = { first: 0, last: -1, height: 36 };

/** The frame's only child that scrolls is a head as high as a row, and then the rows. */
export const useRowsInSight = (frame: RefObject<HTMLElement | null>, count: number) => {
  const [sight, setSight] = useState(NOTHING);
  const look = useCallback((): void => {
    if (frame.current === null) return;
    const { scrollTop, clientHeight } = frame.current;
    const height = Number.parseInt(getComputedStyle(frame.current).getPropertyValue("--row"), 10) || NOTHING.height;
    const first = Math.max(0, Math.floor(scrollTop / height) - BEYOND);
    const last = Math.min(count - 1, Math.ceil((scrollTop + clientHeight) / height) + BEYOND);
    setSight((before) => (before.first === first && before.last === last && before.height === height ? before : { first, last, height }));
  }, [frame, count]);
  useLayoutEffect(() => {
    const { current } = frame;
    if (current === null) return;
    look();
    const resized = new ResizeObserver(look);
    resized.observe(current);
    current.addEventListener("scroll", look, { passive: true });
    return () => {
      resized.disconnect();
      current.removeEventListener("scroll", look);
    };
  }, [frame, look]);
  /** Scrolls as little as it takes to show the row below the head. */
  const show = (index: number): void => {
    const { current } = frame;
    if (current === null) return;
    const { height } = sight;
    const head = current.querySelector<HTMLElement>("[data-head]")?.offsetHeight ?? 0;
    const [top, bottom] = [index * height, (index + 1) * height + head];
    if (top < current.scrollTop) current.scrollTop = top;
    else if (bottom > current.scrollTop + current.clientHeight) current.scrollTop = bottom - current.clientHeight;
    look();
  };
  return { ...sight, show };
};
