// The token of a tunnel: shown to whoever may see it for as long as they look, and replaced.
import type { Tunnel } from "@mooring/client";
import { useMutation } from "@tanstack/react-query";
import { mooring } from "../../api/client.ts";
import { Confirm, Dialog, Form } from "../../ui/dialog.tsx";
import { Copyable, Facts } from "../../ui/parts.tsx";
import { text } from "./text.ts";

interface Props {
  readonly tunnel: Tunnel;
  readonly onClose: () => void;
}

const Shown = ({ tunnel: { url, access }, token, onClose }: Props & { readonly token: string }) => {
  const isVisited = access.mode === "token";
  return (
    <div className="stack">
      <p>{text.tokenWhat}</p>
      <Facts
        of={{
          [text.token]: <Copyable text={token} />,
          [text.visitBy]: isVisited ? <Copyable text={`x-mooring-token: ${token}`} /> : null,
          [text.visitPage]: isVisited ? <Copyable text={`${url}?mooring_token=${token}`} /> : null,
        }}
      />
      <div className="row">
        <button type="button" data-kind="primary" onClick={onClose}>
          {text.close}
        </button>
      </div>
    </div>
  );
};

export const ShowToken = (props: Props) => {
  const { tunnelId } = props.tunnel;
  // A secret is not kept longer than somebody looks at it.
  const read = useMutation({ mutationFn: () => mooring.tunnels.credentials.query({ tunnelId }), gcTime: 0 });
  return (
    <Dialog title={text.showToken} open onClose={props.onClose}>
      {read.data === undefined ? (
        <Form submit={text.showToken} busy={read.isPending} error={read.error} onCancel={props.onClose} onSubmit={() => read.mutate()}>
          <p>{text.tokenWhat}</p>
        </Form>
      ) : (
        <Shown {...props} token={read.data.token} />
      )}
    </Dialog>
  );
};

export const RotateToken = (props: Props) => {
  const { tunnelId } = props.tunnel;
  const rotate = useMutation({ mutationFn: () => mooring.tunnels.rotateCredentials.mutate({ tunnelId }), gcTime: 0 });
  if (rotate.data === undefined)
    return (
      <Confirm title={text.rotate} submit={text.rotate} open onClose={props.onClose} action={rotate} onConfirm={() => rotate.mutate()}>
        {text.rotation}
      </Confirm>
    );
  return (
    <Dialog title={text.token} open onClose={props.onClose}>
      <Shown {...props} token={rotate.data.token} />
    </Dialog>
  );
};
