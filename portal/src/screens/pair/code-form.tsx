// The field for the code that a machine shows: one input, drawn as a box for each letter. The eighth letter looks the code up.
import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api, codeOf } from "../../api/client.ts";
import { Refusal } from "../../ui/failure.tsx";
import { useId } from "../../ui/use-id.ts";
import css from "./pair.module.css";
import { hasStrange, isCode, isWhole, LETTERS, lettersOf, showCode } from "./pairing-code.ts";
import { text } from "./text.ts";

/** The machine behind a code. Each look counts against a small limit, so nothing but a person repeats it. */
export const useLookup = (code: string | undefined) =>
  useQuery({
    ...api.pairing.lookup.queryOptions({ code: code ?? "" }),
    enabled: code !== undefined && isCode(code),
    staleTime: Number.POSITIVE_INFINITY,
    refetchInterval: false,
  });

const Boxes = ({ typed }: { readonly typed: string }) => {
  const letters = lettersOf(typed);
  return (
    <span className={css["boxes"]} aria-hidden="true">
      {Array.from({ length: LETTERS }, (_, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a place has no other identity
        <span key={at} data-next={at === Math.min(letters.length, LETTERS - 1) || undefined} data-half={at === LETTERS / 2 || undefined}>
          {letters[at]}
        </span>
      ))}
    </span>
  );
};

export interface CodeFormProps {
  readonly code: string | undefined;
  readonly onLookUp: (code: string) => void;
}
export const CodeForm = ({ code = "", onLookUp }: CodeFormProps) => {
  const [typed, setTyped] = useState(() => showCode(code));
  const [known, setKnown] = useState(code);
  // The code of the URL goes when the machine is approved or rejected.
  if (known !== code) {
    setKnown(code);
    setTyped(showCode(code));
  }
  const id = useId();
  const asked = useLookup(code === "" ? undefined : code);
  const [strange, setStrange] = useState(false);
  const refused = strange || (isWhole(typed) && !isCode(typed));
  const take = (next: string): void => {
    if (!isCode(next)) return;
    if (showCode(next) === showCode(code)) void asked.refetch();
    else onLookUp(showCode(next));
  };
  const send = (event: FormEvent): void => {
    event.preventDefault();
    take(typed);
  };
  return (
    <form className={css["codeForm"]} onSubmit={send}>
      <div className={css["field"]}>
        <input
          id={id}
          aria-label={text.code}
          aria-describedby={`${id}-hint`}
          aria-invalid={refused || undefined}
          autoComplete="off"
          autoCapitalize="characters"
          spellCheck={false}
          maxLength={24}
          value={typed}
          onChange={({ target }) => {
            const next = showCode(target.value);
            setTyped(next);
            setStrange(hasStrange(target.value));
            if (isWhole(next) && next !== typed) take(next);
          }}
        />
        <Boxes typed={typed} />
      </div>
      <p id={`${id}-hint`} className={css["small"]}>
        {text.codeHint}
      </p>
      {refused ? <p role="alert">{text.notACode}</p> : null}
      {asked.error === null || showCode(code) !== typed ? null : (
        <Refusal key={asked.errorUpdatedAt} sentence={text.failed(codeOf(asked.error))} error={asked.error} retry={() => void asked.refetch()} />
      )}
    </form>
  );
};
