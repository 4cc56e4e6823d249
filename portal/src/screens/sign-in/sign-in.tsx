// Sign-in: at the identity provider, by the operator's link, or with an access token where people have neither.
import { useMutation, useQuery } from "@tanstack/react-query";
import { api, keepToken } from "../../api/client.ts";
import { resume } from "../../api/session.ts";
import { Form, TextField } from "../../ui/dialog.tsx";
import { tokenOf } from "../../ui/fields/trim-input.ts";
import { Copyable, Loaded, Page } from "../../ui/parts.tsx";
import { failureText, text } from "./text.ts";

const ByLink = () => {
  const signIn = useMutation({ ...api.sessions.signIn.mutationOptions(), onSuccess: resume });
  return (
    <>
      <p>{text.link}</p>
      <Copyable text="node dist/server/cli.js sign-in" />
      <Form
        submit={text.submit}
        busy={signIn.isPending}
        error={signIn.error}
        onSubmit={(fields) => signIn.mutate({ token: tokenOf(String(fields.get("link"))) })}
      >
        <TextField label={text.linkField} name="link" required maxLength={400} />
      </Form>
    </>
  );
};

const ByProvider = ({ loginUrl, inDialog }: { readonly loginUrl: string; readonly inDialog: boolean }) => {
  const back = `${location.pathname}${location.search}`;
  const href = `${loginUrl}?${new URLSearchParams({ return_to: back.startsWith("/sign-in") ? "/" : back })}`;
  return inDialog ? (
    <>
      <p>{text.elsewhere}</p>
      <div className="row">
        <a href={href} target="_blank" rel="noreferrer">
          {text.provider}
        </a>
        <button type="button" data-kind="primary" onClick={() => void resume()}>
          {text.goOn}
        </button>
      </div>
    </>
  ) : (
    <a href={href}>{text.provider}</a>
  );
};

const ByToken = () => (
  <Form submit={text.submit} busy={false} error={null} onSubmit={(fields) => keepToken(String(fields.get("token")))}>
    <p>{text.none}</p>
    <TextField label={text.tokenField} name="token" type="password" required maxLength={8_000} />
  </Form>
);

export const Ways = ({ inDialog }: { readonly inDialog: boolean }) => {
  const config = useQuery(api.general.authConfig.queryOptions({}));
  return (
    <Loaded read={config}>
      {({ signIn, loginUrl }) => {
        if (signIn === "oidc" && loginUrl !== null) return <ByProvider loginUrl={loginUrl} inDialog={inDialog} />;
        return signIn === "link" ? <ByLink /> : <ByToken />;
      }}
    </Loaded>
  );
};

export const SignIn = ({ inDialog = false }: { readonly inDialog?: boolean }) => {
  const failed = new URLSearchParams(location.search).get("error");
  if (inDialog) return <Ways inDialog />;
  return (
    <main>
      <Page title={text.title}>
        {failed === null ? null : <p role="alert">{failureText(failed)}</p>}
        <div className="stack">
          <Ways inDialog={false} />
        </div>
      </Page>
    </main>
  );
};
