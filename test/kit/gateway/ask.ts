// A call that has to succeed, for what a test needs before it begins.
import type { Caller, World } from "./world.ts";

/** The answer's data. Throws what the gateway refuses. */
export const askAs = async ({ call }: Pick<World, "call">, as: Caller, method: string, path: string, body?: object) => {
  const answer = await call(as, method, `/v1${path}`, body === undefined ? {} : { body });
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body?.data;
};
