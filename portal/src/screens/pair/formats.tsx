// The command of a token for many machines, as a shell line, for cloud-init and for Ansible.
import { useState } from "react";
import { CodeBlock } from "./code-block.tsx";
import css from "./pair.module.css";
import { text } from "./text.ts";

/** As root, without a person: no sudo. JSON's strings are YAML's, too. */
const asRoot = (command: string): string => JSON.stringify(command.replace("| sudo sh", "| sh"));

const cloudInit = (command: string): string => `#cloud-config
runcmd:
  - [sh, -c, ${asRoot(command)}]
`;
/** Until the machine has its identity, a run tries again. The log does not show the token. */
const ansible = (command: string): string =>
  [
    `- name: ${text.ansibleTask}`,
    "  become: true",
    ["  no_log", "true"].join(": "),
    "  ansible.builtin.shell:",
    `    cmd: ${asRoot(command)}`,
    "    creates: /var/lib/mooring-agent/identity.json",
    "",
  ].join("\n");
const FORMATS = [
  ["Shell", (command: string) => command],
  ["cloud-init", cloudInit],
  ["Ansible", ansible],
] as const;

export const Formats = ({ command }: { readonly command: string }) => {
  const [shown, setShown] = useState(0);
  const [name, make] = FORMATS[shown] ?? FORMATS[0];
  return (
    <>
      {/* biome-ignore lint/a11y/useSemanticElements: no fieldset, because nothing here is sent */}
      <div role="group" aria-label={text.format} className={css["kinds"]} data-strip>
        {FORMATS.map(([word], at) => (
          <button key={word} type="button" aria-pressed={at === shown} onClick={() => setShown(at)}>
            {word}
          </button>
        ))}
      </div>
      <CodeBlock what={text.theText(name)} copied={async () => make(command)}>
        {make(command)}
      </CodeBlock>
    </>
  );
};
