// Checks the opening handshake of WebSocket (RFC 6455 section 4.2.1) before anything asks who sent it.
import { SUBPROTOCOL } from "../../../protocol/index.ts";
import { AppError } from "../../core/errors.ts";
import type { HttpRequest } from "./http-message.ts";

const VERSION = "13";
/** 16 bytes of base64. */
const KEY = /^[A-Za-z0-9+/]{22}==$/;

const words = (list = ""): readonly string[] => list.split(",").map((word) => word.trim());
const names = (list: string | undefined, wanted: string): boolean => words(list).some((word) => word.toLowerCase() === wanted);

const upgradeRequired = (reason: string): AppError => new AppError("PROTOCOL_UNSUPPORTED", { details: { reason, supported: [SUBPROTOCOL] } });

/** The headers of every 426. */
export const UPGRADE_HEADERS: Readonly<Record<string, string>> = {
  Upgrade: "websocket",
  Connection: "Upgrade",
  "Sec-WebSocket-Version": VERSION,
  "Sec-WebSocket-Protocol": SUBPROTOCOL,
};

/** Null for a good one. */
export const handshakeFault = ({ method, headers }: Pick<HttpRequest, "method" | "headers">): AppError | null => {
  if (method !== "GET" || !names(headers["upgrade"], "websocket") || !names(headers["connection"], "upgrade")) return upgradeRequired("no_upgrade");
  if (headers["sec-websocket-version"] !== VERSION) return upgradeRequired("websocket_version");
  const offered = headers["sec-websocket-protocol"];
  if (offered !== undefined && !words(offered).includes(SUBPROTOCOL)) return upgradeRequired("subprotocol");
  if (!KEY.test(headers["sec-websocket-key"] ?? ""))
    return new AppError("VALIDATION_FAILED", { details: { reason: "websocket_key", header: "sec-websocket-key" } });
  // Nobody could tell a body from the first frames.
  if (Number(headers["content-length"] ?? 0) > 0 || headers["transfer-encoding"] !== undefined)
    return new AppError("VALIDATION_FAILED", { details: { reason: "upgrade_with_body" } });
  return null;
};

/** The subprotocol for the 101: a client fails the connection over one that it did not offer. */
export const subprotocolOf = ({ headers }: Pick<HttpRequest, "headers">): string => (headers["sec-websocket-protocol"] === undefined ? "" : SUBPROTOCOL);
