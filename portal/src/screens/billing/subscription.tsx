// What an owner does with a subscription: cancel it, keep it after all, and open the payment provider's page.
import { useMutation } from "@tanstack/react-query";
import { api, queryClient } from "../../api/client.ts";
import { Dialog, Form, SelectField } from "../../ui/dialog.tsx";
import { Failure } from "../../ui/failure.tsx";
import { dayOf } from "../../ui/time.tsx";
import { text } from "./text.ts";

export const readBillingAgain = (): Promise<void> => queryClient.invalidateQueries(api.billing.pathFilter());

export const CancelSubscription = ({ until, onClose }: { readonly until: string | undefined; readonly onClose: () => void }) => {
  const cancel = useMutation(
    api.billing.cancel.mutationOptions({
      onSuccess: async () => {
        await readBillingAgain();
        onClose();
      },
    }),
  );
  return (
    <Dialog title={text.cancelTitle} open onClose={onClose}>
      <Form
        danger
        submit={text.cancel}
        busy={cancel.isPending}
        error={cancel.error}
        onCancel={onClose}
        onSubmit={(fields) => cancel.mutate({ atPeriodEnd: fields.get("when") === "end" })}
      >
        <p>{text.cancelNote}</p>
        <SelectField
          label={text.cancelWhen}
          name="when"
          options={[
            ["end", text.cancelEnd(until === undefined ? "" : dayOf(until))],
            ["now", text.cancelNow],
          ]}
        />
      </Form>
    </Dialog>
  );
};

export const ResumeSubscription = () => {
  const resume = useMutation(api.billing.resume.mutationOptions({ onSuccess: readBillingAgain }));
  return (
    <>
      <button type="button" data-kind="primary" disabled={resume.isPending} onClick={() => resume.mutate({})}>
        {text.resume}
      </button>
      {resume.error === null ? null : <Failure error={resume.error} />}
    </>
  );
};

/** Where a payment provider sends the person back to. Without a provider the gateway answers with this address itself. */
export const returnUrl = (): string => `${location.origin}/billing`;

export const CustomerPortal = () => {
  const portal = useMutation(
    api.billing.portal.mutationOptions({
      onSuccess: ({ url }, asked) => {
        if (url !== asked.returnUrl) location.assign(url);
      },
    }),
  );
  return (
    <>
      <button type="button" disabled={portal.isPending} onClick={() => portal.mutate({ returnUrl: returnUrl() })}>
        {text.portal}
      </button>
      {portal.error === null ? null : <Failure error={portal.error} />}
    </>
  );
};
