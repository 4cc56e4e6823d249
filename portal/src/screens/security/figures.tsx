// How much there is to look at, each figure with the way to it.
import { useQuery } from "@tanstack/react-query";
import { api } from "../../api/client.ts";
import { Figure, Figures } from "../../ui/figures.tsx";
import { Loaded } from "../../ui/parts.tsx";
import { Shape } from "../../ui/status.tsx";
import type { Tab } from "./search.ts";
import { text } from "./text.ts";

interface CountProps {
  readonly count: number;
  readonly word: string;
  readonly tab: Tab;
  readonly isBad?: boolean;
}
const Count = ({ count, word, tab, isBad = false }: CountProps) => (
  <Figure
    name={
      <>
        {isBad && count > 0 ? <Shape tone="bad" /> : null}
        {word}
      </>
    }
    value={text.number(count)}
    link={{ to: "/security", search: tab === "alerts" ? {} : { tab } }}
  />
);

export const SecurityFigures = () => {
  const read = useQuery(api.security.metrics.queryOptions({}));
  return (
    <Figures label={text.figures}>
      <Loaded read={read} rows={1}>
        {({ totalEvents, openAlerts, blockedEntities }) => (
          <>
            <Count count={openAlerts} word={text.openAlerts} tab="alerts" isBad />
            <Count count={totalEvents} word={text.events} tab="events" />
            <Count count={blockedEntities} word={text.blockedNow} tab="blocked" />
          </>
        )}
      </Loaded>
    </Figures>
  );
};
