// Signing in with a key, out again, and asking who one is.
import { createMooring } from "../index.ts";
import { type CliCommand, DONE } from "./command.ts";
import { fileOf, forgetGatewayKey, gatewayUrlOf, writeGatewayKey } from "./credentials.ts";
import { Refusal } from "./refusal.ts";

const KEY = /^svk_\S+$/;

const login: CliCommand = {
  name: "login",
  words: ["URL"],
  about: "Sign in to a gateway with an API key, which is asked for unless MOORING_KEY has it.",
  options: {},
  run: async ({ words: [given = ""], output, env, ask }) => {
    const url = gatewayUrlOf(given);
    const key = (env["MOORING_KEY"] || (await ask("API key: "))).trim();
    if (!KEY.test(key)) throw new Refusal("an API key begins with svk_; make one in the console under Settings, Keys");
    const me = await createMooring({ url, token: key }).general.me.query({});
    const file = await writeGatewayKey(env, { url, key });
    output.answer({ url, subject: me.subject, tenantId: me.tenantId, role: me.role, file }, () => [
      `Signed in to ${url} as ${me.subject} of ${me.tenantId}. The key is in ${file}.`,
    ]);
    return DONE;
  },
};

const logout: CliCommand = {
  name: "logout",
  words: [],
  about: "Forget the address and the key. The key stays valid until somebody revokes it.",
  options: {},
  run: async ({ output, env }) => {
    await forgetGatewayKey(env);
    output.answer({ file: fileOf(env) }, () => ["Signed out."]);
    return DONE;
  },
};

const whoami: CliCommand = {
  name: "whoami",
  words: [],
  about: "Show whose key it is, and what it may do.",
  options: {},
  run: async ({ output, gateway }) => {
    const me = await (await gateway()).general.me.query({});
    output.answer(me, () => [`${me.subject} of ${me.tenantId}, with the role ${me.role}`, `permissions: ${me.permissions.join(" ")}`]);
    return DONE;
  },
};

export const SIGNING_IN = [login, logout, whoami];
