// How the kit's gateway pairs: by an enrollment token, or as soon as "a person" has approved.
import type { BrokenRule } from "../verdict.ts";
import { accept, type HeardCall, type KitReply, refuseCall } from "./reply.ts";

export interface KitPairing {
  /** The codes that were given, oldest first. */
  readonly codes: readonly string[];
  /** The answers `pending` before a collect gets the identity. */
  pendings: number;
  /** Bound to a code by the first activation. */
  readonly activatedBy: string | null;
  readonly comparison: string;
  readonly portalUrl: string;
  readonly pollToken: string;
  /** Null for a path that is none of pairing's. */
  answer(call: HeardCall): KitReply | null;
}

export interface KitPairingDeps {
  readonly token: string;
  readonly identity: () => Readonly<Record<string, unknown>>;
  readonly fault: (finding: BrokenRule) => void;
}

const COLLECT_AFTER_S = 0.4;

export const createKitPairing = ({ token, identity, fault }: KitPairingDeps): KitPairing => {
  const codes: string[] = [];
  let fingerprint: string | null = null;
  let activatedBy: string | null = null;
  const [comparison, pollToken] = ["402917", "pol_kit_secret_of_the_machine"];
  const portalUrl = "https://portal.example.com/pair?code=";

  const initiate = ({ json }: HeardCall): KitReply => {
    const given = json?.["device_fingerprint"];
    if (typeof given !== "string" || given.length < 8 || given.length > 256) {
      fault({ rule: "R1.2", due: "a device_fingerprint of 8 to 256 characters", seen: String(given) });
      return refuseCall(400, "VALIDATION_FAILED");
    }
    if (fingerprint !== null && fingerprint !== given)
      fault({ rule: "R1.2", due: "the same device_fingerprint each time", seen: `${fingerprint}, then ${given}` });
    fingerprint = given;
    codes.push(`KIT${codes.length}-GHJK`);
    const pairing_code = codes.at(-1);
    return accept({ pairing_code, expires_at: "2099-01-02T03:19:05.678Z", portal_url: `${portalUrl}${pairing_code}`, pollToken, comparison }, { status: 201 });
  };
  const activate = (code: string, status: number): KitReply => {
    // The machine is a device already, and its identity went to another code.
    if (activatedBy !== null && activatedBy !== code) return refuseCall(409, "DEVICE_ALREADY_PAIRED");
    activatedBy = code;
    return accept(identity(), { status });
  };
  const autoActivate = ({ json }: HeardCall): KitReply => {
    if (json?.["enrollment_token"] !== token) {
      fault({ rule: "R1.6", due: "the enrollment token that the agent was given", seen: String(json?.["enrollment_token"]) });
      return refuseCall(401, "ENROLLMENT_TOKEN_INVALID");
    }
    const code = String(json["pairing_code"]);
    return codes.includes(code) ? activate(code, 201) : refuseCall(404, "PAIRING_CODE_NOT_FOUND");
  };
  const collect = ({ json }: HeardCall): KitReply => {
    const code = String(json?.["pairing_code"]);
    if (json?.["pollToken"] !== pollToken || json["device_fingerprint"] !== fingerprint || !codes.includes(code)) {
      fault({ rule: "R1.7", due: "the code, the fingerprint and the pollToken of initiate", seen: JSON.stringify(json) });
      return refuseCall(404, "PAIRING_CODE_NOT_FOUND");
    }
    if (pairing.pendings > 0) {
      pairing.pendings -= 1;
      return accept({ status: "pending", pollAfterSeconds: COLLECT_AFTER_S });
    }
    activatedBy = code;
    return accept({ status: "activated", pollAfterSeconds: COLLECT_AFTER_S, identity: identity() });
  };
  const answers: ReadonlyMap<string, (call: HeardCall) => KitReply> = new Map([
    ["/v1/pairing/initiate", initiate],
    ["/v1/pairing/auto-activate", autoActivate],
    ["/v1/pairing/collect", collect],
  ]);
  const pairing: KitPairing = {
    codes,
    pendings: 0,
    get activatedBy() {
      return activatedBy;
    },
    comparison,
    portalUrl,
    pollToken,
    answer: (call) => answers.get(call.path)?.(call) ?? null,
  };
  return pairing;
};
