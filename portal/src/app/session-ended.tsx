// Asks for a new sign-in over the page, which keeps what was typed.
import { SignIn } from "../screens/sign-in/sign-in.tsx";
import { Dialog } from "../ui/dialog.tsx";

const stay = (): void => undefined;

export const SessionEnded = () => (
  <Dialog title="Your session has ended" open onClose={stay}>
    <SignIn inDialog />
  </Dialog>
);
