// What each type of event means. Not in `search.ts`, which every page loads.
import type { SecurityEvent } from "@mooring/client";
import { given, oneOf } from "../../api/search.ts";

export type SecurityType = SecurityEvent["type"];
export const MEANINGS: Readonly<Record<SecurityType, string>> = {
  "auth.failed_burst": "Credentials were refused again and again.",
  "signature.invalid_burst": "Signatures were wrong again and again.",
  "signature.replayed": "A signature was used a second time.",
  "pairing.bruteforce": "Pairing codes or enrollment tokens were guessed.",
  "device.takeover_attempt": "A machine asked for the identity of a living device.",
  "device.fingerprint_changed": "A machine took over a device's identity, with permission.",
  "device.cloned": "Two living agents use one identity.",
  "api_key.used_from_new_ip": "An API key was used from an address for the first time.",
  "privilege.escalation_attempt": "Somebody tried to grant what they do not hold.",
  "cross_tenant.attempt": "A credential was used for another tenant or another device.",
  "webhook.ssrf_blocked": "A call to an address that is not public was stopped.",
  "secrets.read": "A device's secrets were read.",
};

export const TYPES = Object.keys(MEANINGS) as SecurityType[];

/** Filters as the API takes them: without a type that this console does not know. */
export const knownType = <T extends { readonly type?: string }>({ type, ...same }: T) => ({ ...same, ...given({ type: oneOf(type, TYPES) }) });
