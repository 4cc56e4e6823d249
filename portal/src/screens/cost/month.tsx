// What a time has cost: its figures, its days, and the rows of the allocation with what is idle as a tone of its own.
import type { CostAllocation, CostSummary } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import { api, codeOf } from "../../api/client.ts";
import { useKeptError } from "../../api/kept-error.ts";
import { useMay } from "../../api/session.ts";
import { Chart } from "../../ui/charts/chart.tsx";
import { Field } from "../../ui/dialog.tsx";
import { Bar, Figure, Figures } from "../../ui/figures.tsx";
import { Empty, Loaded, Panel } from "../../ui/parts.tsx";
import css from "./cost.module.css";
import { moneyText } from "./money.ts";
import { AGGREGATES, type CostSearch, WINDOWS } from "./search.ts";
import { keyText, text } from "./text.ts";

const route = getRouteApi("/cost");
const ROWS = 50;

const NoRates = () => {
  const may = useMay()("cost:write");
  const action = may ? (
    <Link to="/cost" search={{ tab: "rates" }} data-kind="primary">
      {text.enterRates}
    </Link>
  ) : undefined;
  return <Empty action={action}>{may ? text.noRates : text.noRatesForMe}</Empty>;
};

const Expected = ({ of }: { readonly of: CostSummary }) => {
  const { data } = useQuery(api.costs.forecast.queryOptions({ months: 1 }));
  const [month] = data?.byMonth ?? [];
  if (month === undefined) return <Figure name={text.expected} value="…" />;
  const beside = data?.confidence === "low" ? text.littleKnown : text.band(moneyText(month.low, of), moneyText(month.high, of));
  return <Figure name={text.expected} value={moneyText(month.expected, of)} beside={beside} />;
};

const Sums = ({ of, isMonth }: { readonly of: CostSummary; readonly isMonth: boolean }) => {
  const ofDevices = of.totalCost - of.sharedCost;
  const used = ofDevices === 0 ? 0 : (1 - of.idleCost / ofDevices) * 100;
  const { through } = of.window;
  return (
    <Figures label={text.title}>
      <Figure name={isMonth ? text.soFar : text.total} value={moneyText(of.totalCost, of)} beside={through === null ? undefined : text.through(through)} />
      {isMonth ? <Expected of={of} /> : null}
      <Figure name={text.used} value={text.usedBy(used)} beside={moneyText(ofDevices - of.idleCost, of)} />
      <Figure name={text.shared} value={moneyText(of.sharedCost, of)} />
    </Figures>
  );
};

const Days = ({ of }: { readonly of: CostSummary }) => {
  const unit = 10 ** of.minorDigits;
  const { times, lines } = useMemo(
    () => ({
      times: of.days.map(({ date }) => Date.parse(date) / 1_000),
      lines: [
        { label: text.lineUsed, tone: "busy" as const, values: of.days.map(({ totalCost, idleCost }) => (totalCost - idleCost) / unit) },
        { label: text.lineIdle, tone: "idle" as const, values: of.days.map(({ idleCost }) => idleCost / unit) },
      ],
    }),
    [of, unit],
  );
  return <Chart label={text.perDay} times={times} lines={lines} stepped format={(amount) => moneyText(amount * unit, of)} />;
};

const Rows = ({ of }: { readonly of: CostAllocation }) => {
  const most = Math.max(...of.rows.map(({ totalCost }) => totalCost), 1);
  return (
    <>
      <table className={css["rows"]}>
        <thead>
          <tr>
            <th scope="col">{text.name}</th>
            <th scope="col">{text.share}</th>
            <th scope="col" className={css["number"]}>
              {text.efficiency}
            </th>
            <th scope="col" className={css["number"]}>
              {text.cost}
            </th>
          </tr>
        </thead>
        <tbody>
          {of.rows.map((row) => (
            <tr key={row.key}>
              <th scope="row">{keyText(row.key, row.name)}</th>
              <td>
                <Bar
                  parts={[
                    { tone: "busy", count: row.totalCost - row.idleCost },
                    { tone: "idle", count: row.idleCost },
                  ]}
                  whole={most}
                />
              </td>
              <td className={css["number"]}>{row.efficiency === null ? "" : text.usedBy(row.efficiency * 100)}</td>
              <td className={css["number"]}>{moneyText(row.totalCost, of)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {of.basis === "declared" ? <p className="muted">{text.declared}</p> : null}
    </>
  );
};

const Choice = <T extends string>({
  label,
  values,
  words,
  value,
  onChange,
}: {
  readonly label: string;
  readonly values: readonly T[];
  readonly words: Readonly<Record<T, string>>;
  readonly value: T;
  readonly onChange: (value: T) => void;
}) => (
  <Field label={label}>
    {(id) => (
      // as: the options say so
      <select id={id} value={value} onChange={({ target }) => onChange(target.value as T)}>
        {values.map((each) => (
          <option key={each} value={each}>
            {words[each]}
          </option>
        ))}
      </select>
    )}
  </Field>
);

export const Month = () => {
  const { window = "month", by = "device" } = route.useSearch();
  const navigate = useNavigate();
  const show = (change: CostSearch): void => {
    const { window: time, by: key } = { window, by, ...change };
    void navigate({ to: "/cost", search: { ...(time === "month" ? {} : { window: time }), ...(key === "device" ? {} : { by: key }) }, replace: true });
  };
  const summary = useQuery(api.costs.summary.queryOptions({ window }));
  const allocation = useQuery(api.costs.allocation.queryOptions({ window, aggregate: by, limit: ROWS }));
  if (codeOf(useKeptError(summary)) === "COST_RATES_MISSING") return <NoRates />;
  return (
    <>
      <div className={css["choices"]}>
        <Choice label={text.window} values={WINDOWS} words={text.windows} value={window} onChange={(time) => show({ window: time as never })} />
        <Choice label={text.by} values={AGGREGATES} words={text.aggregates} value={by} onChange={(key) => show({ by: key as never })} />
      </div>
      <Loaded read={summary} rows={4}>
        {(of) =>
          of.window.through === null ? (
            <Empty>{text.nothingYet}</Empty>
          ) : (
            <>
              <Sums of={of} isMonth={window === "month"} />
              <Panel title={text.perDay}>
                <Days of={of} />
              </Panel>
              <Panel title={text.allocation}>
                <Loaded read={allocation} rows={6}>
                  {(rows) => <Rows of={rows} />}
                </Loaded>
              </Panel>
            </>
          )
        }
      </Loaded>
    </>
  );
};
