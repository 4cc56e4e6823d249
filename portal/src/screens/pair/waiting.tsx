// Who waits to be approved, and what became of those that were: kept true by the live feed.
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api } from "../../api/client.ts";
import { live } from "../../api/live.ts";
import { Loaded, Panel } from "../../ui/parts.tsx";
import { Shape } from "../../ui/status.tsx";
import { useNow } from "../../ui/time.tsx";
import { Arrivals } from "./arrivals.tsx";
import { useLookup } from "./code-form.tsx";
import css from "./pair.module.css";
import { text } from "./text.ts";
import { WaitingMachine } from "./waiting-machine.tsx";

const SHOWN = 20;

const Listening = () => {
  const { link } = live.use();
  const tone = link === "live" ? "busy" : "warn";
  return (
    <p className={css["listening"]} data-tone={tone}>
      <Shape tone={tone} /> <span>{link === "live" ? text.listening : text.notListening}</span> <span className={css["small"]}>{text.showUp}</span>
    </p>
  );
};

interface WaitingProps {
  /** That somebody has typed. */
  readonly code: string | undefined;
  /** That was approved here. */
  readonly device: string | undefined;
}
export const Waiting = ({ code, device }: WaitingProps) => {
  const now = useNow();
  const navigate = useNavigate();
  const [rejected, setRejected] = useState(false);
  const looked = useLookup(code).data;
  const requests = useQuery(api.pairing.requests.queryOptions({ pageSize: SHOWN }));
  const approved = (deviceId: string): void => {
    setRejected(false);
    void navigate({ to: "/pair", search: { device: deviceId }, replace: true });
  };
  const wasRejected = (): void => {
    setRejected(true);
    void navigate({ to: "/pair", search: device === undefined ? {} : { device }, replace: true });
  };
  const decided = { onApproved: approved, onRejected: wasRejected };
  const isAlive = ({ expiresAt }: { readonly expiresAt: string }): boolean => Date.parse(expiresAt) > now;
  return (
    <Panel title={text.waiting}>
      <Listening />
      {rejected ? <p role="status">{text.rejected}</p> : null}
      {looked === undefined || code === undefined ? null : isAlive(looked) ? (
        <WaitingMachine key={code} of={looked} named={{ code }} {...decided} />
      ) : (
        <p role="alert">{text.expiredHere}</p>
      )}
      <Loaded read={requests} rows={2}>
        {({ items, total = items.length }) => {
          const others = items.filter((each) => isAlive(each) && each.comparison !== looked?.comparison);
          return (
            <>
              {others.map(({ requestId, tokenId, ...machine }) => (
                <WaitingMachine key={requestId} of={machine} named={{ requestId }} byToken={tokenId !== null} {...decided} />
              ))}
              {total > items.length ? <p className={css["small"]}>{text.moreWait(total - items.length)}</p> : null}
              {others.length === 0 && looked === undefined ? <p className={css["small"]}>{text.nobodyWaits}</p> : null}
            </>
          );
        }}
      </Loaded>
      <Arrivals named={device} />
    </Panel>
  );
};
