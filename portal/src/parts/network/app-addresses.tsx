// Where an app answers: in the network of its device, and from anywhere through tunnels.
import type { AppDetails } from "@mooring/client";
import { useMay } from "../../api/session.ts";
import { Copyable, Panel } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { AppTunnels } from "./app-tunnels.tsx";
import css from "./network.module.css";

type Kind = AppDetails["addresses"][number]["kind"];
const text = {
  addresses: "Addresses",
  noAddress: "It has no address that its agent knows.",
  kinds: { lan: "", tunnel: "tunnel", domain: "domain" } satisfies Readonly<Record<Kind, string>>,
  silent: "does not answer",
  open: "Open",
  openAt: (url: string) => `Open ${url}`,
} as const;

export const AppAddresses = ({ app }: { readonly app: AppDetails }) => {
  const { addresses } = app;
  const may = useMay();
  return (
    <Panel title={text.addresses}>
      {addresses.length === 0 ? (
        <p className="muted">{text.noAddress}</p>
      ) : (
        <ul className={css["ways"]}>
          {addresses.map(({ kind, name, url, reachable }) => (
            <li key={`${kind} ${name}`}>
              <Copyable text={url} />
              {kind === "lan" ? null : <span className="muted">{text.kinds[kind]}</span>}
              {reachable === false ? <Status status="failed" word={text.silent} /> : null}
              {/^https?:\/\//.test(url) ? (
                <a href={url} target="_blank" rel="noreferrer" data-kind="button" data-size="small" aria-label={text.openAt(url)}>
                  {text.open}
                </a>
              ) : null}
            </li>
          ))}
        </ul>
      )}
      {may("tunnel:read") ? <AppTunnels app={app} /> : null}
    </Panel>
  );
};
