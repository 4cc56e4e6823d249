// Completion of commands and options in a shell.
import { type CliCommand, DONE, EVERYWHERE } from "./command.ts";
import { WrongUse } from "./refusal.ts";

const SHELLS = ["bash", "zsh", "fish"] as const;
type Shell = (typeof SHELLS)[number];

const optionsOf = ({ options }: CliCommand): string[] => Object.keys({ ...options, ...EVERYWHERE }).map((name) => `--${name}`);
const firstsOf = (commands: readonly CliCommand[]): string[] => [...new Set(commands.map(({ name }) => name.split(" ")[0] ?? ""))];
const secondsOf = (commands: readonly CliCommand[], first: string): string[] =>
  commands.flatMap(({ name }) => (name.startsWith(`${first} `) ? [name.slice(first.length + 1)] : []));

const bash = (commands: readonly CliCommand[]): string => `_mooring() {
  local word="\${COMP_WORDS[COMP_CWORD]}" command="\${COMP_WORDS[1]}"
  if [ "$COMP_CWORD" -eq 1 ]; then COMPREPLY=($(compgen -W "${firstsOf(commands).join(" ")}" -- "$word")); return; fi
  case "$command \${COMP_WORDS[2]}" in
${commands
  .filter(({ name }) => name.includes(" "))
  .map((command) => `    "${command.name}") COMPREPLY=($(compgen -W "${optionsOf(command).join(" ")}" -- "$word")); return ;;`)
  .join("\n")}
  esac
  case "$command" in
${firstsOf(commands)
  .map((first) => {
    const own = commands.find(({ name }) => name === first);
    return `    ${first}) COMPREPLY=($(compgen -W "${[...secondsOf(commands, first), ...(own === undefined ? [] : optionsOf(own))].join(" ")}" -- "$word")) ;;`;
  })
  .join("\n")}
  esac
}
complete -F _mooring mooring
`;

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
const fish = (commands: readonly CliCommand[]): string =>
  [
    "complete -c mooring -f",
    ...firstsOf(commands).map((first) => {
      const about = commands.find(({ name }) => name === first)?.about ?? secondsOf(commands, first).join(", ");
      return `complete -c mooring -n __fish_use_subcommand -a ${first} -d ${quoted(about)}`;
    }),
    ...firstsOf(commands).flatMap((first) =>
      secondsOf(commands, first).map((second) => `complete -c mooring -n '__fish_seen_subcommand_from ${first}' -a ${second}`),
    ),
    ...commands.flatMap(({ name, options }) =>
      Object.entries({ ...options, ...EVERYWHERE }).map(
        ([option, { about, value }]) =>
          `complete -c mooring -n '__fish_seen_subcommand_from ${name.split(" ").at(-1)}' -l ${option}${value === undefined ? "" : " -r"} -d ${quoted(about)}`,
      ),
    ),
    "",
  ].join("\n");

const SCRIPTS: Readonly<Record<Shell, (commands: readonly CliCommand[]) => string>> = {
  bash,
  zsh: (commands) => `#compdef mooring\nautoload -U +X bashcompinit && bashcompinit\n${bash(commands)}`,
  fish,
};
const isShell = (name: string): name is Shell => (SHELLS as readonly string[]).includes(name);

export const completion = (commands: () => readonly CliCommand[]): CliCommand => ({
  name: "completion",
  words: ["SHELL"],
  about: `Print a script that completes commands and options in ${SHELLS.join(", ")}: source <(mooring completion bash).`,
  options: {},
  run: async ({ words: [shell = ""], output }) => {
    if (!isShell(shell)) throw new WrongUse(`there is no completion for ${shell}; name one of ${SHELLS.join(", ")}`);
    const script = SCRIPTS[shell](commands());
    output.answer({ shell, script }, () => script.trimEnd().split("\n"));
    return DONE;
  },
});
