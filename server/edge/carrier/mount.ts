// Lets agents and connectors open carriers: checks the signed upgrade, or the token of a tunnel, and takes the connection over.
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { createWebSocketStream, WebSocketServer } from "ws";
import { CARRIER_PATH, CARRIER_PROTOCOL } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import { AppError, isAppError } from "../../core/errors.ts";
import { newId } from "../../core/ids.ts";
import type { CarrierFacts } from "../../core/ports/carriers.ts";
import type { EdgeMount, EdgeRequest } from "../../core/ports/edge.ts";
import type { HttpRequest } from "../../gateway/http/http-message.ts";
import { httpRequestOf } from "../head.ts";
import { edgePages, rawResponse } from "../pages.ts";
import type { OwnCarriers } from "./carriers.ts";

type Owner = Pick<CarrierFacts, "key" | "tenantId">;

export interface CarrierMountDeps {
  /** Default: that of agents who serve tunnels. */
  readonly path?: string;
  readonly carriers: Pick<OwnCarriers, "adopt">;
  /** The device whose agent signed the upgrade. Throws AppError. */
  readonly admit: (request: HttpRequest, ip: string) => Promise<Owner>;
  /** The tunnel whose token it is; null for any other. */
  readonly connectorOf: (token: string) => Promise<Owner | null>;
  /** The answer to a refusal, as agents know it. */
  readonly refusal: (
    error: AppError,
    request: HttpRequest,
  ) => { readonly status: number; readonly headers: Readonly<Record<string, string>>; readonly body: string };
  readonly toAppError: (error: unknown) => AppError;
  readonly clock: Clock;
  readonly log: { info(fields: object, message: string): void };
}

const BEARER = /^Bearer (mtt_[A-Za-z0-9_-]{20,100})$/;
/** Longer than the largest frame of HTTP/2 within. */
const MAX_MESSAGE_BYTES = 1_048_576;
const SWITCHING = `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${CARRIER_PROTOCOL}\r\n\r\n`;

type Kind = CarrierFacts["kind"];
const kindOf = ({ headers }: HttpRequest): Kind | null => {
  const wanted = (headers["upgrade"] ?? "").toLowerCase();
  if (wanted === CARRIER_PROTOCOL) return "raw";
  const offered = (headers["sec-websocket-protocol"] ?? "").split(",").map((word) => word.trim());
  return wanted === "websocket" && offered.includes(CARRIER_PROTOCOL) ? "websocket" : null;
};

export const createCarrierMount = (deps: CarrierMountDeps): EdgeMount => {
  const sockets = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    maxPayload: MAX_MESSAGE_BYTES,
    handleProtocols: () => CARRIER_PROTOCOL,
  });
  const ownerOf = async (request: HttpRequest, ip: string): Promise<Owner> => {
    const token = BEARER.exec(request.headers["authorization"] ?? "")?.[1];
    if (token === undefined) return deps.admit(request, ip);
    const owner = await deps.connectorOf(token);
    if (owner === null) throw new AppError("UNAUTHORIZED", { details: { reason: "tunnel_token_unknown" } });
    return owner;
  };
  const take = (facts: CarrierFacts, connection: Duplex): void => {
    if (connection.destroyed) return;
    deps.log.info({ carrierId: facts.carrierId, key: facts.key, kind: facts.kind }, "accepted a carrier");
    deps.carriers.adopt(facts, connection);
  };
  const upgrade = async (request: EdgeRequest, socket: Duplex, head: Buffer): Promise<void> => {
    const asked = httpRequestOf(request);
    const refuse = (error: AppError): void => {
      if (socket.writable && !socket.destroyed) socket.end(rawResponse(deps.refusal(error, asked)));
    };
    const kind = kindOf(asked);
    if (kind === null) return refuse(new AppError("PROTOCOL_UNSUPPORTED", { details: { supported: [CARRIER_PROTOCOL] } }));
    try {
      const owner = await ownerOf(asked, request.ip);
      const clientVersion = asked.headers["x-mooring-client"]?.slice(0, 64) ?? null;
      const facts: CarrierFacts = { ...owner, carrierId: newId("ses"), kind, clientVersion, openedAt: deps.clock.now() };
      if (socket.destroyed) return;
      if (kind === "websocket") {
        sockets.handleUpgrade(request.message as IncomingMessage, socket, head, (webSocket) => take(facts, createWebSocketStream(webSocket)));
        return;
      }
      if (head.length > 0) socket.unshift(head);
      // A session on a TLS socket that still writes ends the process (Node 20: "Assertion failed: is_write_in_progress()").
      socket.write(SWITCHING, () => take(facts, socket));
    } catch (error) {
      refuse(isAppError(error) ? error : deps.toAppError(error));
    }
  };
  const handle: EdgeMount["handler"]["handle"] = (request, response) =>
    edgePages.refuse(
      { request, response },
      {
        status: 426,
        code: "PROTOCOL_UNSUPPORTED",
        message: "Agents open their carrier here.",
        headers: { Upgrade: CARRIER_PROTOCOL, Connection: "Upgrade" },
      },
    );
  return { prefix: deps.path ?? CARRIER_PATH, handler: { handle, upgrade } };
};
