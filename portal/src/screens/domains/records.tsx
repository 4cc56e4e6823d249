// The records that a domain needs: what to set, what was found instead, and when somebody looks again.
import type { CustomDomain } from "@mooring/client";
import { useMutation } from "@tanstack/react-query";
import { api, queryClient } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import css from "../../parts/network/network.module.css";
import { Failure } from "../../ui/failure.tsx";
import { Copyable, Facts, Panel } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { Ago } from "../../ui/time.tsx";
import { text } from "./text.ts";

type Check = CustomDomain["checks"]["txt"];
const STATUS: Readonly<Record<Check["status"], string>> = { pass: "ok", fail: "failed", unknown: "pending" };

interface RecordProps {
  readonly title: string;
  readonly type: string;
  readonly check: Check;
  /** What to set; undefined where nothing has to be set. */
  readonly record?: { readonly name: string; readonly value: string };
}
const DnsRecord = ({ title, type, check, record }: RecordProps) => {
  const { status, expected, found, at } = check;
  const isRight = status === "pass";
  return (
    <section className={css["record"]} aria-label={`${type}: ${title}`}>
      <div className="row">
        <strong>{type}</strong>
        <span className="muted">{title}</span>
        {at === null ? <span className="muted">{text.notChecked}</span> : <Status status={STATUS[status]} word={text.checks[status]} />}
      </div>
      <Facts
        of={{
          [text.recordName]: record === undefined ? null : <Copyable text={record.name} />,
          [text.recordValue]: record === undefined ? null : <Copyable text={record.value} />,
          [text.expected]: isRight || record !== undefined ? null : expected,
          [text.found]: isRight || at === null ? null : <span className="mono">{found.length === 0 ? text.foundNothing : found.join(", ")}</span>,
          [text.checked]: at === null ? null : <Ago at={at} />,
        }}
      />
    </section>
  );
};

export const DomainRecords = ({ domain }: { readonly domain: CustomDomain }) => {
  const { domainId, verification, dns, checks, nextCheckAt, verificationErrors, status } = domain;
  const may = useMay();
  const check = useMutation(api.domains.verify.mutationOptions({ onSuccess: () => queryClient.invalidateQueries(api.domains.pathFilter()) }));
  const isWanting = verificationErrors.length > 0 && status !== "active";
  return (
    <Panel title={text.records}>
      <p className="muted">{text.recordsWhat}</p>
      <DnsRecord title={text.ownership} type="TXT" check={checks.txt} record={verification} />
      <DnsRecord title={text.routing} type={dns.recordType} check={checks.cname} record={dns} />
      {checks.caa.status === "fail" ? <DnsRecord title={text.caa} type="CAA" check={checks.caa} /> : null}
      {checks.http.status === "fail" ? <DnsRecord title={text.http} type="HTTP" check={checks.http} /> : null}
      {isWanting ? (
        <ul aria-label={text.missing}>
          {verificationErrors.map((error) => (
            <li key={error}>{error}</li>
          ))}
        </ul>
      ) : null}
      {check.error === null ? null : <Failure key={check.submittedAt} error={check.error} />}
      <div className="row">
        {may("domain:write") ? (
          <button type="button" disabled={check.isPending} onClick={() => check.mutate({ domainId })}>
            {status === "failed" || status === "expired" ? text.restart : text.check}
          </button>
        ) : null}
        {nextCheckAt === null ? null : (
          <span className="muted" role="timer">
            {text.looksAgain} <Ago at={nextCheckAt} />
          </span>
        )}
      </div>
    </Panel>
  );
};
