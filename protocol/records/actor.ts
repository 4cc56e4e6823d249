// Who did something: beside the id, what it names and how it is called now.
import { z } from "zod";

export const Actor = z.object({
  kind: z.enum(["user", "apiKey", "agent", "system"]),
  id: z.string(),
  name: z.string().nullable().describe("Email address of the member, name of the key, name or hostname of the device. Null if it is not known any more."),
});
export type Actor = z.infer<typeof Actor>;
