// What shares a place, as tabs: a list beside the screen in the settings, a strip everywhere else.
import { Link } from "@tanstack/react-router";
import { Strip, tabClass } from "../../ui/tabs.tsx";
import { type Entry, placeAt } from "../places.ts";

export const PlaceTabs = ({ entry: { word, tabs }, pathname }: { readonly entry: Entry; readonly pathname: string }) => {
  const current = placeAt(pathname)?.to;
  return (
    <Strip label={word} current={current}>
      {tabs.map((tab) => (
        <Link
          key={tab.to}
          to={tab.to}
          className={tabClass}
          activeOptions={{ exact: true, includeSearch: false }}
          aria-current={tab.to === current ? "page" : undefined}
        >
          {tab.word}
        </Link>
      ))}
    </Strip>
  );
};
