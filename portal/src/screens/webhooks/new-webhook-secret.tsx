// A webhook right after it got a secret: the secret, if the gateway made it, once.
import { SecretOnce } from "../../ui/secret-once.tsx";
import { text } from "./text.ts";

export interface NewWebhookSecretProps {
  readonly made: { readonly secret?: string | undefined; readonly warnings: readonly string[] };
  readonly note?: string;
  readonly onDone: () => void;
}

export const NewWebhookSecret = ({ made: { secret, warnings }, note = text.signed, onDone }: NewWebhookSecretProps) =>
  secret === undefined ? (
    <div className="stack">
      <p>{warnings.length > 0 ? text.weak : note}</p>
      <div className="row">
        <button type="button" data-kind="primary" onClick={onDone}>
          {text.done}
        </button>
      </div>
    </div>
  ) : (
    <SecretOnce label={text.secret} secret={secret} onDone={onDone}>
      <p>{note}</p>
    </SecretOnce>
  );
