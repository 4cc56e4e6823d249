// Pairs machines: by one command, by the code that a machine shows, or many at once; and shows what arrives.
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useMay, useMe } from "../../api/session.ts";
import { Beside, DetailPage } from "../../ui/detail-page.tsx";
import { Icon, PageIcon } from "../../ui/icon.tsx";
import { Panel } from "../../ui/parts.tsx";
import { CodeForm } from "./code-form.tsx";
import { OneCommand } from "./one-command.tsx";
import css from "./pair.module.css";
import { text } from "./text.ts";
import { Tokens } from "./tokens.tsx";
import { Waiting } from "./waiting.tsx";

const route = getRouteApi("/pair");

const After = () => (
  <Panel title={text.after}>
    <ol className={css["after"]}>
      {text.afterwards.map((step) => (
        <li key={step}>{step}</li>
      ))}
    </ol>
  </Panel>
);

export const PairScreen = () => {
  const { code, device } = route.useSearch();
  const navigate = useNavigate();
  const enrolls = useMay()("enrollment:write");
  const approves = useMe().features.includes("browserPairing");
  const lookUp = (next: string): void => void navigate({ to: "/pair", search: { code: next } });
  const main = (
    <>
      <Panel title={text.byCommand} icon={<Icon name="commands" />}>
        <OneCommand />
      </Panel>
      <Panel title={text.byCode} icon={<PageIcon name="key" />}>
        {approves ? <CodeForm code={code} onLookUp={lookUp} /> : <p>{text.noFeature}</p>}
      </Panel>
      {enrolls ? <Tokens /> : null}
    </>
  );
  const side = (
    <>
      <Waiting code={approves ? code : undefined} device={device} />
      <After />
    </>
  );
  return (
    <DetailPage
      path={[
        <Link key="devices" to="/devices">
          Devices
        </Link>,
      ]}
      title={text.title}
    >
      <Beside main={main} side={side} />
    </DetailPage>
  );
};
