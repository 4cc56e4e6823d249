// One icon from the files of all icons. It says nothing to a screen reader: the word stands beside it, or is the button's label.
import css from "./icon.module.css";
import type { IconName, PageIconName } from "./icon-names.ts";

/** The addresses of the files with the icons, which the build knows. */
declare const __ICONS__: string;
declare const __PAGE_ICONS__: string;

const drawn = (address: string) => (
  <svg className={css["icon"]} aria-hidden="true">
    <use href={address} />
  </svg>
);

export const Icon = ({ name }: { readonly name: IconName }) => drawn(`${__ICONS__}#${name}`);
export const PageIcon = ({ name }: { readonly name: PageIconName }) => drawn(`${__PAGE_ICONS__}#${name}`);
