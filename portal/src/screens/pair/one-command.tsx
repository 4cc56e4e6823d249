// One command for the machine: its token is made when somebody copies it.
import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { PAGE_SIZE } from "../../api/lists.ts";
import { useMay } from "../../api/session.ts";
import { Dialog, Form } from "../../ui/dialog.tsx";
import { Failure } from "../../ui/failure.tsx";
import { Loaded } from "../../ui/parts.tsx";
import { exactTime, useNow } from "../../ui/time.tsx";
import { CodeBlock } from "./code-block.tsx";
import css from "./pair.module.css";
import { KINDS, type Kind, text } from "./text.ts";
import { TokenFields } from "./token-fields.tsx";
import { ONE_MACHINE, type TokenTerms, termsOf } from "./token-terms.ts";

/** Before the token is made, where it will stand. */
const TO_COME = "enr_…";
const withPlace = (kind: Kind, command: string): string =>
  kind === "ownAgent"
    ? [command, `MOORING_ENROLLMENT_TOKEN=${TO_COME}`].join("\n")
    : command.replace(/ sudo sh(?: -s --)?/, ` sudo sh -s -- --token ${TO_COME}`);
/** As people read it: the options in a line of their own. */
const wrapped = (command: string): string => command.replace(" -s -- ", " -s -- \\\n  ");

const Terms = ({ of, onChange, onClose }: { readonly of: TokenTerms; readonly onChange: (terms: TokenTerms) => void; readonly onClose: () => void }) => {
  const [tags, setTags] = useState(of.tags);
  const send = (fields: FormData): void => {
    onChange(termsOf(fields, tags));
    onClose();
  };
  return (
    <Dialog title={text.termsTitle} open onClose={onClose}>
      <Form submit={text.useTerms} busy={false} error={null} onSubmit={send} onCancel={onClose}>
        <TokenFields of={of} tags={tags} onTags={setTags} />
      </Form>
    </Dialog>
  );
};

/** The command that was copied last, as long as its token pairs another machine. */
const useMade = (enabled: boolean) => {
  const now = useNow();
  const tokens = useQuery({ ...api.pairing.listTokens.queryOptions({ page: 1, pageSize: PAGE_SIZE }), enabled }).data?.items ?? [];
  const create = useMutation(
    api.pairing.createToken.mutationOptions({ onSuccess: () => void queryClient.invalidateQueries(api.pairing.listTokens.pathFilter()) }),
  );
  const known = tokens.find(({ tokenId }) => tokenId === create.data?.tokenId) ?? create.data;
  const isGood = known !== undefined && Date.parse(known.expiresAt) > now && (known.maxUses === null || known.uses < known.maxUses);
  return { create, made: isGood ? create.data : undefined, isSpent: create.data !== undefined && !isGood };
};

type Shown = Kind | "macos";

const Command = ({ kind }: { readonly kind: Shown }) => {
  const enrolls = useMay()("enrollment:write");
  const bare = useQuery(api.pairing.installCommand.queryOptions({}));
  const [terms, setTerms] = useState(ONE_MACHINE);
  const [changes, setChanges] = useState(false);
  const { create, made, isSpent } = useMade(enrolls);
  if (kind === "macos") return null;
  const copied = async (): Promise<string> => {
    if (!enrolls) return bare.data?.commands[kind] ?? "";
    const { commands } = made ?? (await create.mutateAsync({ ...terms, name: text.nameOfCommand(exactTime(new Date().toISOString())) }));
    return commands[kind];
  };
  return (
    <Loaded read={bare} rows={2}>
      {({ commands }) => (
        <>
          <CodeBlock what={text.whatIsCopied[kind]} copied={copied}>
            {wrapped(made?.commands[kind] ?? (enrolls ? withPlace(kind, commands[kind]) : commands[kind]))}
          </CodeBlock>
          {create.error === null ? null : <Failure error={create.error} />}
          {enrolls ? (
            <p className={css["small"]}>
              {isSpent ? text.spent : made === undefined ? text.toCome : text.isMade} {text.terms(terms)}{" "}
              {terms.tags.map((tag) => (
                <span key={tag} className={css["tag"]}>
                  {tag}
                </span>
              ))}{" "}
              <button type="button" data-kind="plain" onClick={() => setChanges(true)}>
                {text.change}
              </button>
            </p>
          ) : (
            <p className={css["small"]}>{text.showsCode}</p>
          )}
          {changes ? (
            <Terms
              of={terms}
              onChange={(next) => {
                setTerms(next);
                create.reset();
              }}
              onClose={() => setChanges(false)}
            />
          ) : null}
        </>
      )}
    </Loaded>
  );
};

export const OneCommand = () => {
  const [kind, setKind] = useState<Shown>("linux");
  return (
    <>
      <div className={css["head"]}>
        {/* biome-ignore lint/a11y/useSemanticElements: no fieldset, because nothing here is sent */}
        <div role="group" aria-label={text.kind} className={css["kinds"]} data-strip>
          {KINDS.map(([value, word]) => (
            <button key={value} type="button" aria-pressed={value === kind} onClick={() => setKind(value)}>
              {word}
            </button>
          ))}
        </div>
        <p className={css["small"]}>{text.needs[kind]}</p>
      </div>
      <Command kind={kind} />
      {kind === "linux" || kind === "docker" ? (
        <details className={css["small"]}>
          <summary>{text.whatItDoes}</summary>
          <ol>
            {text.doing[kind].map((step) => (
              <li key={step}>{step}</li>
            ))}
          </ol>
        </details>
      ) : (
        <a href="/v1/docs" target="_blank" rel="noreferrer">
          {text.protocol}
        </a>
      )}
    </>
  );
};
