// Commands that succeeded and failed per second.
import { useMemo, useState } from "react";
import { useEvents } from "../../api/events.ts";
import { Chart } from "../../ui/charts/chart.tsx";
import type { ChartLine } from "../../ui/charts/plot.tsx";
import { Failure } from "../../ui/failure.tsx";
import { Panel, Skeleton } from "../../ui/parts.tsx";
import { useNow } from "../../ui/time.tsx";
import { useEnded } from "./ended.ts";
import css from "./overview.module.css";
import { createRates } from "./rates.ts";
import { text } from "./text.ts";

export const RatePanel = () => {
  const [rates] = useState(createRates);
  const { data, error, refetch } = useEnded(true);
  useEvents(rates.receive);
  const now = Math.floor(useNow() / 1_000);
  const { times, lines } = useMemo(() => {
    const { times: seconds, good, bad } = rates.series(now, data);
    const both: readonly ChartLine[] = [
      { label: text.rate.succeeded, tone: "good", values: good },
      { label: text.rate.failed, tone: "bad", values: bad },
    ];
    return { times: seconds, lines: both };
  }, [rates, now, data]);
  return (
    <Panel title={text.rate.title} beside={<span className="muted">{text.rate.span}</span>}>
      {error === null ? null : <Failure error={error} retry={() => void refetch()} />}
      {data === undefined && error === null ? (
        <div className={css["chartPlace"]}>
          <Skeleton rows={1} />
        </div>
      ) : (
        <Chart label={`${text.rate.title}, ${text.rate.span}`} times={times} lines={lines} stepped />
      )}
    </Panel>
  );
};
