// The internal door, on its own loopback listener and with its own token: metrics, node status, drain.
import { createHash, timingSafeEqual } from "node:crypto";
import type { Exchange, HttpDoor, HttpResponse } from "./exchange.ts";

export interface InternalDeps {
  readonly token: string;
  readonly metrics: { text(): Promise<string>; readonly contentType: string };
  readonly node: () => object;
  readonly drain: () => void;
}

const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
const json = (status: number, body: object): HttpResponse => ({
  status,
  headers: { "Content-Type": "application/json; charset=utf-8", "Cache-Control": "no-store" },
  body: JSON.stringify(body),
});

export const createInternalDoor = ({ token, metrics, node, drain }: InternalDeps): HttpDoor => {
  const expected = digest(`Bearer ${token}`);
  const answer = async ({ request }: Exchange): Promise<HttpResponse> => {
    if (!timingSafeEqual(digest(request.headers["authorization"] ?? ""), expected))
      return json(401, { success: false, error: "The internal token is missing or wrong.", code: "UNAUTHORIZED" });
    switch (`${request.method} ${request.path}`) {
      case "GET /internal/metrics":
        return { status: 200, headers: { "Content-Type": metrics.contentType }, body: await metrics.text() };
      case "GET /internal/node":
        return json(200, node());
      case "POST /internal/drain":
        drain();
        return json(202, { draining: true });
      default:
        return json(404, { success: false, error: "There is no such route.", code: "NOT_FOUND" });
    }
  };
  const handle = async (exchange: Exchange): Promise<void> =>
    exchange.respond(
      await answer(exchange).catch(() => json(503, { success: false, error: "The figures cannot be had right now.", code: "SERVICE_UNAVAILABLE" })),
    );
  return { receive: () => ({ maxBodyBytes: 1_024, handle }) };
};
