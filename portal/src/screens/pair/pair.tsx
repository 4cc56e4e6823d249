// Pairs machines: by the code that a machine shows, or by a command with an enrollment token.
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useMay, useMe } from "../../api/session.ts";
import { Page, Panel } from "../../ui/parts.tsx";
import { CodeForm } from "./code-form.tsx";
import { Installation } from "./installation.tsx";
import { Machine } from "./machine.tsx";
import css from "./pair.module.css";
import { text } from "./text.ts";
import { Tokens } from "./tokens.tsx";

const route = getRouteApi("/pair");

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
        <p className="muted">{text.howTo}</p>
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
