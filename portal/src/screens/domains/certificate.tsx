// The certificate of a domain: until when it is good, who renews it, and one of the owner's own.
import type { CustomDomain } from "@mooring/client";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api, mooring, queryClient } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { Dialog, Field, Form } from "../../ui/dialog.tsx";
import { Failure } from "../../ui/failure.tsx";
import { Notice } from "../../ui/notice.tsx";
import { Facts, Panel } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { Ago } from "../../ui/time.tsx";
import { text } from "./text.ts";

const MAX_PEM = 65_536;
const readAgain = (): Promise<void> => queryClient.invalidateQueries(api.domains.pathFilter());

const Upload = ({ domainId, onClose }: { readonly domainId: string; readonly onClose: () => void }) => {
  const put = useMutation(
    api.domains.putCertificate.mutationOptions({
      onSuccess: async () => {
        onClose();
        await readAgain();
      },
      // A key is not kept longer than somebody sends it.
      gcTime: 0,
    }),
  );
  const area = (label: string, name: string) => (
    <Field label={label}>{(id) => <textarea id={id} name={name} rows={6} required maxLength={MAX_PEM} autoComplete="off" spellCheck={false} />}</Field>
  );
  return (
    <Dialog title={text.upload} open onClose={onClose}>
      <Form
        submit={text.save}
        busy={put.isPending}
        error={put.error}
        onCancel={onClose}
        onSubmit={(fields) => put.mutate({ domainId, certificate: String(fields.get("certificate")), privateKey: String(fields.get("privateKey")) })}
      >
        {area(text.pem, "certificate")}
        {area(text.key, "privateKey")}
      </Form>
    </Dialog>
  );
};

export const DomainCertificate = ({ domain: { domainId, certificate } }: { readonly domain: CustomDomain }) => {
  const { status, source, issuer, notBefore, notAfter, lastError, nextRenewalAt } = certificate;
  const may = useMay()("domain:certificate");
  const [uploads, setUploads] = useState(false);
  const act = useMutation({
    mutationFn: (verb: "renewCertificate" | "removeCertificate"): Promise<unknown> => mooring.domains[verb].mutate({ domainId }),
    onSuccess: readAgain,
  });
  return (
    <Panel title={text.certificate}>
      {lastError === null ? null : (
        <Notice tone="bad" title={text.lastError}>
          <p>{lastError}</p>
        </Notice>
      )}
      {status === "none" ? <p className="muted">{text.noCertificate}</p> : null}
      <Facts
        of={{
          [text.status]: status === "none" ? null : <Status status={status} />,
          [text.source]: source === null ? null : text.sources[source],
          [text.issuer]: issuer,
          [text.from]: notBefore === null ? null : <Ago at={notBefore} />,
          [text.until]: notAfter === null ? null : <Ago at={notAfter} />,
          [text.renewal]: nextRenewalAt === null ? null : <Ago at={nextRenewalAt} />,
        }}
      />
      {act.error === null ? null : <Failure key={act.submittedAt} error={act.error} />}
      {may ? (
        <div className="row">
          <button type="button" disabled={act.isPending} onClick={() => act.mutate("renewCertificate")}>
            {text.renew}
          </button>
          <button type="button" onClick={() => setUploads(true)}>
            {text.upload}
          </button>
          {source === "own" ? (
            <button type="button" data-kind="danger" disabled={act.isPending} onClick={() => act.mutate("removeCertificate")}>
              {text.withdraw}
            </button>
          ) : null}
        </div>
      ) : null}
      {uploads ? <Upload domainId={domainId} onClose={() => setUploads(false)} /> : null}
    </Panel>
  );
};
