// A button with a menu: the browser's popover, which closes with Esc and by a click beside it. Its items are of `menu-items.tsx`.
import { createContext, type KeyboardEvent, type ReactNode, Suspense, type ToggleEvent, useEffect, useLayoutEffect, useRef, useState } from "react";
import css from "./menu.module.css";
import { useId } from "./use-id.ts";

/** Without popovers the menu is a part of the page that is hidden or not. */
const HAS_POPOVERS = "showPopover" in HTMLElement.prototype;
/** Without anchors in CSS, the menu is placed by its button's rectangle. */
const HAS_ANCHORS = HAS_POPOVERS && CSS.supports("position-area: block-end span-inline-end");
const GAP_PX = 4;
const EDGE_PX = 8;

const place = (menu: HTMLElement, button: HTMLElement): void => {
  const { left, top, bottom } = button.getBoundingClientRect();
  const isBelow = bottom + GAP_PX + menu.offsetHeight < innerHeight - EDGE_PX;
  menu.style.left = `${Math.max(EDGE_PX, Math.min(left, innerWidth - menu.offsetWidth - EDGE_PX))}px`;
  menu.style.top = `${isBelow ? bottom + GAP_PX : Math.max(EDGE_PX, top - GAP_PX - menu.offsetHeight)}px`;
};

interface AroundItems {
  /** Counts how often the menu was opened; null while it is closed. */
  readonly opening: number | null;
  readonly close: () => void;
}
/** The menu around. */
export const AroundMenu = createContext<AroundItems>({ opening: null, close: () => undefined });

export interface MenuProps {
  /** The button's accessible name, where its content has no words. */
  readonly name?: string;
  /** A tooltip. */
  readonly title?: string | undefined;
  readonly className?: string | undefined;
  readonly button: ReactNode;
  /** Somebody is about to open it: time to load what is in it. */
  readonly onNear?: () => void;
  /** `MenuItems`, made when the menu opens for the first time. */
  readonly children: ReactNode;
}

export const Menu = ({ name, title = name, className, button, onNear, children }: MenuProps) => {
  const id = useId();
  const opener = useRef<HTMLButtonElement>(null);
  const menu = useRef<HTMLDivElement>(null);
  const [isOpen, setIsOpen] = useState(false);
  const [openings, setOpenings] = useState(0);
  const show = (next: boolean): void => {
    setIsOpen(next);
    // A menu that is closed and opened again at once only says that it is open, which it was before.
    if (next) setOpenings((count) => count + 1);
    // The browser gives the focus back unless somebody has put it elsewhere; Safari's buttons never had it.
    else if (document.activeElement === document.body || menu.current?.contains(document.activeElement) === true) opener.current?.focus();
  };
  const toggled = ({ newState }: ToggleEvent<HTMLElement>): void => show(newState === "open");
  const around = { opening: isOpen ? openings : null, close: () => (HAS_POPOVERS ? menu.current?.hidePopover() : show(false)) };
  const press = (event: KeyboardEvent): void => {
    if (event.key !== "Escape") return;
    // The page has a meaning of its own for it.
    event.stopPropagation();
    show(false);
  };
  useEffect(() => {
    if (!isOpen || HAS_POPOVERS) return;
    const left = ({ target }: Event): void => {
      const isInside = target instanceof Node && (menu.current?.contains(target) === true || opener.current?.contains(target) === true);
      if (!isInside) setIsOpen(false);
    };
    document.addEventListener("pointerdown", left);
    return () => document.removeEventListener("pointerdown", left);
  }, [isOpen]);
  useLayoutEffect(() => {
    if (!isOpen || HAS_ANCHORS || menu.current === null) return;
    // Its content may still be loading, and change its size.
    const { current } = menu;
    const resized = new ResizeObserver(() => opener.current !== null && place(current, opener.current));
    resized.observe(current);
    return () => resized.disconnect();
  }, [isOpen]);
  return (
    <>
      <button
        ref={opener}
        type="button"
        className={className}
        aria-label={name}
        title={title}
        aria-haspopup="menu"
        {...(HAS_POPOVERS ? { popoverTarget: id } : { "aria-expanded": isOpen, onClick: () => show(!isOpen) })}
        onPointerEnter={onNear}
        onFocus={onNear}
      >
        {button}
      </button>
      <div
        ref={menu}
        id={id}
        className={css["menu"]}
        {...(HAS_POPOVERS ? { popover: "auto", onToggle: toggled } : { hidden: !isOpen, onKeyDown: press, "data-plain": true })}
      >
        <AroundMenu value={around}>{openings > 0 ? <Suspense fallback={null}>{children}</Suspense> : null}</AroundMenu>
      </div>
    </>
  );
};
