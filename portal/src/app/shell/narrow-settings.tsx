// The settings where there is no room for their list beside them: the list is a page of its own, and each part leads back to it.
import { Link } from "@tanstack/react-router";
import { Icon } from "../../ui/icon.tsx";
import { Page } from "../../ui/parts.tsx";
import type { Entry } from "../places.ts";
import css from "./narrow-settings.module.css";

export const BackToSettings = ({ entry: { root, word } }: { readonly entry: Entry }) => (
  <nav className={css["back"]} aria-label={word}>
    <Link to={root}>{word}</Link> /
  </nav>
);

/** `first` is what the address of the first part says after `#`, because the list has the address without it. */
export const SettingsList = ({ entry: { root, word, tabs }, first }: { readonly entry: Entry; readonly first: string }) => (
  <Page title={word}>
    <nav className={css["list"]} aria-label={word}>
      {tabs.map((tab) => (
        <Link key={tab.to} to={tab.to} {...(tab.to === root ? { hash: first } : {})}>
          <span className="cut">{tab.word}</span>
          <Icon name="forward" />
        </Link>
      ))}
    </nav>
  </Page>
);
