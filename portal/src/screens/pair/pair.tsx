// Pairs machines: by the code that a machine shows, or by a command with an enrollment token.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api } from "../../api/client.ts";
import { useMay, useMe } from "../../api/session.ts";
import { Loaded, Page, Panel } from "../../ui/parts.tsx";
import { CodeForm } from "./code-form.tsx";
import { InstallLine } from "./install-line.tsx";
import { Installation } from "./installation.tsx";
import { Machine } from "./machine.tsx";
import css from "./pair.module.css";
import { text } from "./text.ts";
import { Tokens } from "./tokens.tsx";

const route = getRouteApi("/pair");

/** For a machine at which somebody sits. */
const HowTo = () => {
  const line = useQuery(api.pairing.installCommand.queryOptions({}));
  return (
    <div className="stack">
      <p className="muted">{text.howTo}</p>
      <Loaded read={line} rows={1}>
        {({ command }) => <InstallLine command={command} />}
      </Loaded>
    </div>
  );
};

const ByCode = () => {
  const { code, device } = route.useSearch();
  const navigate = useNavigate();
  const [rejected, setRejected] = useState(false);
  const canApprove = useMe().features.includes("browserPairing");
  const look = (next: string): void => {
    setRejected(false);
    void navigate({ to: "/pair", search: { code: next } });
  };
  if (!canApprove) return <p>{text.noFeature}</p>;
  if (device !== undefined) return <Installation key={device} deviceId={device} />;
  return (
    <>
      <CodeForm key={code} code={code} onLookUp={look} />
      {rejected ? <p role="status">{text.rejected}</p> : null}
      {code === undefined ? (
        <HowTo />
      ) : (
        <Machine
          key={`${code} found`}
          code={code}
          onApproved={(deviceId) => void navigate({ to: "/pair", search: { device: deviceId }, replace: true })}
          onRejected={() => {
            setRejected(true);
            void navigate({ to: "/pair", replace: true });
          }}
        />
      )}
    </>
  );
};

export const PairScreen = () => {
  const may = useMay();
  const pairs = may("device:pair");
  const enrolls = may("enrollment:write");
  return (
    <Page title={text.title}>
      <div className={css["columns"]}>
        {pairs ? (
          <Panel title={text.byCode}>
            <ByCode />
          </Panel>
        ) : null}
        {enrolls ? <Tokens /> : null}
      </div>
    </Page>
  );
};
