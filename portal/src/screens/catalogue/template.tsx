// One application of the catalogue: what it is, what it needs, and the way to install it.
import type { AppTemplate } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import { api } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { Columns } from "../../ui/columns.tsx";
import { Facts, Loaded, Page, Panel } from "../../ui/parts.tsx";
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
        <p key={each} className="mono">
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

const Known = ({ of }: { readonly of: AppTemplate }) => {
  const { tagline, description, version, kind, categories, developer, license, website, sourceUrl, architectures, requirements, minPlan } = of;
  return (
    <>
      <p>
        <strong>{tagline}.</strong> {description}
      </p>
      <Facts
        of={{
          Version: version,
          "Consists of": text.kinds[kind],
          Category: categoryText(categories),
          Developer: developer,
          License: license,
          Memory: text.memory(requirements.memoryMB),
          Disk: text.disk(requirements.diskGB),
          Architectures: architectures.join(", "),
          Plan: minPlan,
          [text.website]: website === null ? null : <Away href={website} words={new URL(website).host} />,
          [text.source]: sourceUrl === null ? null : <Away href={sourceUrl} words={new URL(sourceUrl).host} />,
          Installed: (
            <Link to="/apps" search={{ appType: of.id }}>
              {text.running}
            </Link>
          ),
        }}
      />
    </>
  );
};

const Needed = ({ of: { available, requiredPlan, minPlan } }: { readonly of: AppTemplate }) => {
  const may = useMay();
  if (available) return null;
  return (
    <p role="status">
      {text.notIncluded(requiredPlan ?? minPlan)} {may("billing:read") ? <Link to="/billing">{text.plans}</Link> : null}
    </p>
  );
};

export const TemplateScreen = () => {
  const { templateId } = route.useParams();
  const may = useMay();
  const [installing, setInstalling] = useState(false);
  const read = useQuery({ ...api.apps.template.queryOptions({ templateId }), refetchInterval: false });
  const template = read.data;
  return (
    <Page
      title={template?.name ?? text.one}
      actions={
        template?.available === true && may("deployment:create") ? (
          <button type="button" data-kind="primary" onClick={() => setInstalling(true)}>
            {text.install}
          </button>
        ) : undefined
      }
    >
      <Loaded read={read} rows={8}>
        {(found) => (
          <>
            <Needed of={found} />
            <Known of={found} />
            <Columns>
              <Settings of={found} />
              <List title={text.ports} of={found.ports.map(text.port)} />
              <List title={text.volumes} of={found.volumes} />
              <List title={text.images} of={found.images} />
              {found.upgradeNotes === null ? null : (
                <Panel title={text.upgradeNotes}>
                  {found.upgradeNotes.split(/\n{2,}/).map((part) => (
                    <p key={part}>{part}</p>
                  ))}
                </Panel>
              )}
            </Columns>
            {installing ? <Install of={found} onClose={() => setInstalling(false)} /> : null}
          </>
        )}
      </Loaded>
    </Page>
  );
};
