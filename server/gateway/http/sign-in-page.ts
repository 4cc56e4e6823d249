// Where a browser goes whose sign-in failed: to the console's page for it, with the code, instead of an error in JSON.
import type { AppError } from "../../core/errors.ts";
import type { Entry } from "../call/operation-table.ts";
import type { HttpRequest, HttpResponse } from "./http-message.ts";
import { acceptsHtml } from "./static.ts";

/** A person follows a link that answers with where to go next. */
export const isSignInVisit = ({ op }: Entry, request: HttpRequest): boolean => op.status === 303 && acceptsHtml(request);

export const renderSignInPage = ({ code, details }: AppError, requestId: string): HttpResponse => {
  const reason = details?.["reason"];
  const told = new URLSearchParams({ error: code, ...(typeof reason === "string" ? { reason } : {}), requestId });
  return { status: 303, body: null, headers: { Location: `/sign-in?${told}`, "Cache-Control": "no-store", "x-request-id": requestId } };
};
