// The items of a menu. Arrow keys walk through them, and choosing one closes the menu.
import { type KeyboardEvent, type MouseEvent, type ReactNode, useContext, useLayoutEffect, useRef } from "react";
import css from "./menu.module.css";
import { AroundMenu } from "./menu.tsx";

type Step = (at: number, count: number) => number;
const STEPS: ReadonlyMap<string, Step> = new Map<string, Step>([
  ["ArrowDown", (at, count) => (at + 1) % count],
  ["ArrowUp", (at, count) => (at <= 0 ? count : at) - 1],
  ["Home", () => 0],
  ["End", (_at, count) => count - 1],
]);
const itemsOf = (menu: HTMLElement): readonly HTMLElement[] => [...menu.querySelectorAll<HTMLElement>("[role^='menuitem']:not(:disabled)")];

const walk = (event: KeyboardEvent<HTMLElement>): void => {
  const items = itemsOf(event.currentTarget);
  const isTyping = event.target instanceof HTMLInputElement;
  const step = isTyping && /^(Home|End)$/.test(event.key) ? undefined : STEPS.get(event.key);
  if (step === undefined || items.length === 0) return;
  event.preventDefault();
  items[step(items.indexOf(event.target as HTMLElement), items.length)]?.focus();
};

interface MenuItemsProps {
  readonly label: string;
  /** Above the items: a field that filters them. */
  readonly above?: ReactNode;
  readonly children: ReactNode;
}
export const MenuItems = ({ label, above, children }: MenuItemsProps) => {
  const { opening, close } = useContext(AroundMenu);
  const around = useRef<HTMLDivElement>(null);
  // Begins where somebody goes on: in the field, or at the first item.
  useLayoutEffect(() => {
    const { current } = around;
    if (opening !== null && current !== null) (current.querySelector("input") ?? itemsOf(current)[0])?.focus();
  }, [opening]);
  const chosen = ({ target }: MouseEvent): void => {
    if (target instanceof Element && target.closest("[role^='menuitem']") !== null) close();
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the items inside have the roles
    <div ref={around} onKeyDown={walk} onClick={chosen}>
      {above}
      <div role="menu" aria-label={label} className={css["items"]}>
        {children}
      </div>
    </div>
  );
};

/** For links in a menu, which look like its other items. */
export const itemClass = css["item"] ?? "";

interface ItemProps {
  readonly onChoose: () => void;
  /** Whether it is the chosen one of several. */
  readonly checked?: boolean;
  readonly disabled?: boolean;
  readonly children: ReactNode;
}
export const MenuItem = ({ onChoose, checked, disabled = false, children }: ItemProps) => (
  // biome-ignore lint/a11y/useAriaPropsSupportedByRole: only a radio has it
  <button
    type="button"
    role={checked === undefined ? "menuitem" : "menuitemradio"}
    aria-checked={checked}
    tabIndex={-1}
    className={css["item"]}
    disabled={disabled}
    onClick={onChoose}
  >
    {children}
  </button>
);
