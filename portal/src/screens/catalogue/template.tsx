// One application of the catalogue: what it is, what it needs, which devices can run it, where it is installed, and the way to install it.
import type { AppTemplate } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { api } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { AppStatus } from "../../parts/apps/app-status.tsx";
import { AppTile } from "../../ui/app-tile.tsx";
import { Columns } from "../../ui/columns.tsx";
import { DetailPage, type PageFact } from "../../ui/detail-page.tsx";
import { Notice } from "../../ui/notice.tsx";
import { Facts, Loaded, Panel } from "../../ui/parts.tsx";
import css from "./catalogue.module.css";
import { diskText, fitText, lackingTexts, memoryText } from "./fit-words.ts";
import { Install } from "./install.tsx";
import { categoryText, text } from "./text.ts";

const route = getRouteApi("/catalogue/$templateId");

const Away = ({ href, words }: { readonly href: string; readonly words: string }) => (
  <a href={href} target="_blank" rel="noreferrer">
    {words}
  </a>
);

const List = ({ title, of }: { readonly title: string; readonly of: readonly string[] }) => (
  <Panel title={title}>
    {of.length === 0 ? (
      <p className="muted">{text.nothing}</p>
    ) : (
      of.map((each) => (
        <p key={each} className={`mono ${css["word"]}`}>
          {each}
        </p>
      ))
    )}
  </Panel>
);

const settingsOf = ({ configSchema, secrets }: AppTemplate) => [
  ...Object.entries(configSchema.properties).map(([name, { title, description, default: value }]) => ({
    name,
    title,
    description: description ?? null,
    value: value === undefined ? text.required : text.default(value),
  })),
  ...secrets.map(({ name, title, description, required, generated }) => ({
    name,
    title,
    description,
    value: generated ? text.generated : required ? text.required : "",
  })),
];

const Settings = ({ of }: { readonly of: AppTemplate }) => (
  <Panel title={text.settings}>
    {settingsOf(of).map(({ name, title, description, value }) => (
      <div key={name}>
        <p>
          <strong>{title}</strong> <code>{name}</code> <span className="muted">{value}</span>
        </p>
        {description === null ? null : <p className="muted">{description}</p>}
      </div>
    ))}
  </Panel>
);

const factsOf = ({ version, categories, developer, license, website, sourceUrl }: AppTemplate): readonly PageFact[] => [
  { icon: "tag", words: text.version(version) },
  { words: categoryText(categories) },
  { words: developer },
  { words: license },
  ...(website === null ? [] : [{ icon: "address", words: <Away href={website} words={new URL(website).host} /> } as const]),
  ...(sourceUrl === null ? [] : [{ words: <Away href={sourceUrl} words={text.source} /> }]),
];

/** Why it cannot be installed, with the next step. */
const Hindrance = ({ of }: { readonly of: AppTemplate }): ReactNode => {
  const may = useMay();
  const { available, requiredPlan, minPlan, fits } = of;
  if (!available)
    return (
      <Notice
        tone="warn"
        role="status"
        title={text.notIncluded(requiredPlan ?? minPlan)}
        actions={may("billing:read") ? <Link to="/billing">{text.plans}</Link> : undefined}
      />
    );
  if (fits === null || fits.devices > 0) return null;
  return fits.total === 0 ? (
    <Notice tone="busy" role="status" title={text.noDevices} actions={may("device:pair") ? <Link to="/pair">{text.pair}</Link> : undefined} />
  ) : (
    <Notice tone="warn" role="status" title={text.noneFits}>
      {lackingTexts(of).map((each) => (
        <p key={each}>{each}</p>
      ))}
    </Notice>
  );
};

const Installed = ({ of: { id, installed, installedCount } }: { readonly of: AppTemplate }) => (
  <Panel
    title={text.installed}
    beside={
      installedCount > installed.length ? (
        <Link to="/apps" search={{ appType: id }}>
          {text.allOf(installedCount)}
        </Link>
      ) : undefined
    }
  >
    {installed.length === 0 ? <p className="muted">{text.nowhere}</p> : null}
    {installed.map(({ appId, name, deviceId, deviceName, status, updateAvailable }) => (
      <div key={appId} className="row">
        <Link to="/apps/$appId" params={{ appId }}>
          {name}
        </Link>
        <AppStatus status={status} />
        {deviceName === null ? null : (
          <Link to="/devices/$deviceId" params={{ deviceId }}>
            {deviceName}
          </Link>
        )}
        {updateAvailable ? <span className={css["tag"]}>{text.update}</span> : null}
      </div>
    ))}
  </Panel>
);

const Needs = ({ of }: { readonly of: AppTemplate }) => {
  const fit = fitText(of);
  return (
    <Panel title={text.requirements}>
      {fit === null ? null : <p>{text.sentence(fit)}</p>}
      <Facts
        of={{
          Memory: memoryText(of),
          Disk: diskText(of),
          Architectures: of.architectures.join(", "),
          "Consists of": text.kinds[of.kind],
        }}
      />
      {of.fits?.devices === 0
        ? null
        : lackingTexts(of).map((each) => (
            <p key={each} className="muted">
              {each}
            </p>
          ))}
    </Panel>
  );
};

const Shown = ({ of }: { readonly of: AppTemplate }) => {
  const { tagline, description, ports, volumes, images, upgradeNotes } = of;
  return (
    <>
      <Hindrance of={of} />
      <p>
        <strong>{tagline}.</strong> {description}
      </p>
      <Columns>
        <Installed of={of} />
        <Needs of={of} />
        <Settings of={of} />
        <List title={text.ports} of={ports.map(text.port)} />
        <List title={text.volumes} of={volumes} />
        <List title={text.images} of={images} />
        {upgradeNotes === null ? null : (
          <Panel title={text.upgradeNotes}>
            {upgradeNotes.split(/\n{2,}/).map((part) => (
              <p key={part}>{part}</p>
            ))}
          </Panel>
        )}
      </Columns>
    </>
  );
};

export const TemplateScreen = () => {
  const { templateId } = route.useParams();
  const may = useMay();
  const [installing, setInstalling] = useState(false);
  const read = useQuery(api.apps.template.queryOptions({ templateId }));
  const template = read.data;
  const canInstall = template?.available === true && template.fits?.total !== 0 && may("deployment:create");
  return (
    <DetailPage
      path={[
        <Link key="catalogue" to="/catalogue">
          {text.title}
        </Link>,
      ]}
      title={template?.name ?? text.one}
      mark={template === undefined ? undefined : <AppTile icon={template.icon} hue={template.hue} />}
      facts={template === undefined ? [] : factsOf(template)}
      actions={
        canInstall ? (
          <button type="button" data-kind="primary" onClick={() => setInstalling(true)}>
            {text.install}
          </button>
        ) : undefined
      }
    >
      <Loaded read={read} rows={8}>
        {(found) => (
          <>
            <Shown of={found} />
            {installing ? <Install of={found} onClose={() => setInstalling(false)} /> : null}
          </>
        )}
      </Loaded>
    </DetailPage>
  );
};
