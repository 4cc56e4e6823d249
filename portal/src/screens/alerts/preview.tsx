// When a rule would have opened alerts within the last day.
import { useQuery } from "@tanstack/react-query";
import { api, type mooring } from "../../api/client.ts";
import { numbers } from "../../ui/count.ts";
import { Loaded } from "../../ui/parts.tsx";
import { exactTime } from "../../ui/time.tsx";
import css from "./alerts.module.css";
import { text } from "./text.ts";

export type Trial = Parameters<typeof mooring.alerts.preview.query>[0];

const SHOWN = 8;

export const Preview = ({ trial }: { readonly trial: Trial }) => {
  const read = useQuery({ ...api.alerts.preview.queryOptions(trial), refetchInterval: false });
  return (
    <section className={css["preview"]} aria-label={text.attempt} aria-live="polite">
      <Loaded read={read} rows={2}>
        {({ hours, deviceCount, firings, truncated }) => (
          <>
            <p>{text.wouldHave(deviceCount, hours)}</p>
            <ul>
              {firings.slice(0, SHOWN).map(({ deviceId, name, openedAt, value }) => (
                <li key={`${deviceId} ${openedAt}`}>
                  {name ?? deviceId} <span className="muted">{`${numbers.format(value)}, ${exactTime(openedAt)}`}</span>
                </li>
              ))}
            </ul>
            {firings.length > SHOWN ? <p className="muted">{text.moreFirings(firings.length - SHOWN)}</p> : null}
            {truncated ? <p className="muted">{text.truncated}</p> : null}
          </>
        )}
      </Loaded>
    </section>
  );
};
