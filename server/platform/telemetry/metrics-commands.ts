// Command metrics: how many are open, how long delivery, ack and result took, and how often the gateway had to repair something.
import { LONG_SECONDS, type Makers } from "./metrics-makers.ts";

export interface OpenCommands {
  readonly open: Readonly<Record<string, number>>;
  readonly pastDeadline: number;
}

/** While the database is away these two read NaN or nothing, and the rest of the page still works. */
const UNKNOWN: OpenCommands = { open: {}, pastDeadline: Number.NaN };

/** Registers the two gauges that query the database, once per scrape for both. `commands_past_deadline` comes first on the page. */
export const createQueueGauges = ({ gauge }: Makers) => {
  let count: () => Promise<OpenCommands> = async () => ({ open: {}, pastDeadline: 0 });
  let asked: Promise<OpenCommands> | null = null;
  const once = (): Promise<OpenCommands> => {
    asked ??= count()
      .catch(() => UNKNOWN)
      .finally(() => {
        asked = null;
      });
    return asked;
  };
  gauge(
    { name: "commands_past_deadline", help: "Open commands that the reaper should have ended by now; anything but 0 is a defect" },
    async () => (await once()).pastDeadline,
  );
  gauge({ name: "commands_open", help: "Open commands of all tenants by status", labels: ["status"] }, async () =>
    Object.entries((await once()).open).map(([status, number]) => [{ status }, number] as const),
  );
  return {
    watch: (given: () => Promise<OpenCommands>): void => {
      count = given;
    },
  };
};

export const createCommandMeters = ({ histogram, tally }: Makers) => {
  const delivery = histogram(
    { name: "command_delivery_seconds", help: "Seconds from a command's due time to its first delivery, by channel", labels: ["channel"] },
    LONG_SECONDS,
  );
  const ack = histogram({ name: "command_ack_seconds", help: "Seconds from a delivery to the agent's first ack" }, LONG_SECONDS);
  const endToEnd = histogram({ name: "command_end_to_end_seconds", help: "Seconds from a command's due time to its final result" }, LONG_SECONDS);
  const redeliveries = tally({ name: "command_redeliveries_total", help: "Commands delivered again, by cause", labels: ["cause"] });
  const late = tally({ name: "command_late_results_total", help: "Results that arrived after the gateway had given up their command" });
  const rescued = tally({ name: "sweep_rescued_total", help: "Commands of sockets on this node that the sweep found because no hint had arrived" });
  const deliveredBy = { ws: delivery.labels("ws"), poll: delivery.labels("poll") } as const;
  return {
    delivered: (channel: "ws" | "poll", seconds: number): void => deliveredBy[channel].observe(seconds),
    acknowledged: (seconds: number): void => ack.observe(seconds),
    ended: (seconds: number): void => endToEnd.observe(seconds),
    redelivered: (cause: string): void => redeliveries.inc({ cause }),
    late: (): void => late.inc(),
    rescued: (commands: number): void => rescued.inc(commands),
  };
};
