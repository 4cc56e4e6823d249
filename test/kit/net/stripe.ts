// Signs events as Stripe does, by Stripe's own library.
import Stripe from "stripe";

export const WEBHOOK_SECRET = "whsec_of_the_tests";

/** A body and its signature, as input of billing.providerEvents. */
export const signedEvent = (event: object, secret = WEBHOOK_SECRET): { readonly payload: string; readonly signature: string } => {
  const payload = JSON.stringify(event);
  return { payload, signature: new Stripe("sk_test").webhooks.generateTestHeaderString({ payload, secret }) };
};
