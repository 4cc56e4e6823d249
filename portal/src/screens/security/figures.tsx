// How much there is to look at, each figure with the way to it.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api } from "../../api/client.ts";
import { Loaded } from "../../ui/parts.tsx";
import type { Tab } from "./search.ts";
import css from "./security.module.css";
import { text } from "./text.ts";

const Figure = ({ count, word, tab, isBad = false }: { readonly count: number; readonly word: string; readonly tab: Tab; readonly isBad?: boolean }) => (
  <Link to="/security" search={tab === "alerts" ? {} : { tab }} className={css["figure"]} data-bad={(isBad && count > 0) || undefined}>
    <strong>{text.number(count)}</strong> <span className="muted">{word}</span>
  </Link>
);

export const Figures = () => {
  const read = useQuery(api.security.metrics.queryOptions({}));
  return (
    <nav className={css["figures"]} aria-label={text.figures}>
      <Loaded read={read} rows={1}>
        {({ totalEvents, openAlerts, blockedEntities }) => (
          <>
            <Figure count={openAlerts} word={text.openAlerts(openAlerts)} tab="alerts" isBad />
            <Figure count={totalEvents} word={text.events(totalEvents)} tab="events" />
            <Figure count={blockedEntities} word={text.blockedNow} tab="blocked" />
          </>
        )}
      </Loaded>
    </nav>
  );
};
