// More squares than the page could hold as links, on one canvas: the pointer finds the name of each and opens it.
import { type MouseEvent, useEffect, useRef } from "react";
import type { Tone } from "../status.tsx";
import { colorOf, onColorChange } from "./scheme-colors.ts";
import css from "./squares.module.css";

export interface Square {
  readonly id: string;
  readonly name: string;
  /** The state in words. */
  readonly word: string;
  readonly tone: Tone;
}

const PITCH = 10;
const SIDE = 8;

const colors = (): Readonly<Record<Tone, string>> => ({
  good: colorOf("--good"),
  warn: colorOf("--warn"),
  bad: colorOf("--bad"),
  busy: colorOf("--busy"),
  idle: colorOf("--muted"),
});

const columnsOf = (canvas: HTMLCanvasElement): number => Math.max(1, Math.floor(canvas.clientWidth / PITCH));

const draw = (canvas: HTMLCanvasElement, squares: readonly Square[]): void => {
  const columns = columnsOf(canvas);
  const height = Math.ceil(squares.length / columns) * PITCH;
  const scale = devicePixelRatio;
  canvas.style.height = `${height}px`;
  canvas.width = canvas.clientWidth * scale;
  canvas.height = height * scale;
  const context = canvas.getContext("2d");
  if (context === null) return;
  context.scale(scale, scale);
  const ink = colors();
  squares.forEach(({ tone }, at) => {
    const [x, y] = [(at % columns) * PITCH, Math.floor(at / columns) * PITCH];
    context.fillStyle = ink[tone];
    context.strokeStyle = ink[tone];
    // The states differ in shape as they do among the links: a ring, a cross, a full square.
    if (tone === "idle") context.strokeRect(x + 0.5, y + 0.5, SIDE - 1, SIDE - 1);
    else if (tone === "bad") {
      context.lineWidth = 2;
      context.beginPath();
      context.moveTo(x + 1, y + 1);
      context.lineTo(x + SIDE - 1, y + SIDE - 1);
      context.moveTo(x + SIDE - 1, y + 1);
      context.lineTo(x + 1, y + SIDE - 1);
      context.stroke();
      context.lineWidth = 1;
    } else context.fillRect(x, y, SIDE, SIDE);
  });
};

export interface SquareFieldProps {
  readonly label: string;
  readonly squares: readonly Square[];
  readonly onOpen: (id: string) => void;
}

export const SquareField = ({ label, squares, onOpen }: SquareFieldProps) => {
  const ref = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const canvas = ref.current;
    if (canvas === null) return;
    const again = (): void => {
      if (!document.hidden) draw(canvas, squares);
    };
    again();
    let width = canvas.clientWidth;
    const resized = new ResizeObserver(() => {
      if (canvas.clientWidth === width) return;
      width = canvas.clientWidth;
      again();
    });
    resized.observe(canvas);
    const stopColors = onColorChange(again);
    document.addEventListener("visibilitychange", again);
    return () => {
      resized.disconnect();
      stopColors();
      document.removeEventListener("visibilitychange", again);
    };
  }, [squares]);
  const under = ({ nativeEvent: { offsetX, offsetY }, currentTarget }: MouseEvent<HTMLCanvasElement>): Square | undefined => {
    const column = Math.floor(offsetX / PITCH);
    const columns = columnsOf(currentTarget);
    return column < columns ? squares[Math.floor(offsetY / PITCH) * columns + column] : undefined;
  };
  const name = (event: MouseEvent<HTMLCanvasElement>): void => {
    const square = under(event);
    event.currentTarget.title = square === undefined ? "" : `${square.name}, ${square.word}`;
  };
  const open = (event: MouseEvent<HTMLCanvasElement>): void => {
    const square = under(event);
    if (square !== undefined) onOpen(square.id);
  };
  return <canvas ref={ref} className={css["field"]} role="img" aria-label={label} onMouseMove={name} onClick={open} />;
};
