// The line that makes a machine a device, to copy.
import { Copyable } from "../../ui/parts.tsx";
import css from "./pair.module.css";
import { text } from "./text.ts";

export const InstallLine = ({ command }: { readonly command: string }) => (
  <>
    <pre className={css["command"]}>{command}</pre>
    <div>
      <Copyable text={command} label={text.copy} />
    </div>
  </>
);
