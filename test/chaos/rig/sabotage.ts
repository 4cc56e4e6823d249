// Ways to break a guarantee inside the rig's database, for controls: the gateway works as usual, and a trigger changes its rows.
/** SQL for a trigger that runs these statements on each written row of the table; they may change `new`. */
export const spoil = (table: string, when: "insert" | "update" | "insert or update", body: string): string => {
  const name = `spoil_${table}_${when.replaceAll(" ", "_")}`;
  return `create function ${name}() returns trigger language plpgsql as $spoil$ begin ${body} return new; end $spoil$;
    create trigger ${name} before ${when} on ${table} for each row execute function ${name}();`;
};

/** The database forgets which node holds a socket, so the sweep finds nothing there and only hints deliver. */
export const SWEEP_FINDS_NOTHING = spoil("device_presence", "insert or update", "new.node_id := null;");

/** A claimed command stays in the queue for the next claim, three times at most, so that the load stays bounded. */
export const NO_LEASE = spoil(
  "command_queue",
  "update",
  "if new.status in ('sent', 'acknowledged', 'running') and new.attempt < 4 then new.status := 'queued'; end if;",
);

/** A command counts as done once it is written to a socket. */
export const WRITTEN_IS_DONE = spoil(
  "command_queue",
  "update",
  `if new.status = 'sent' then
     update commands set status = 'succeeded', finished_at = now(), attempt = new.attempt, history = new.history where tenant_id = new.tenant_id and command_id = new.command_id;
     delete from command_queue where tenant_id = new.tenant_id and device_id = new.device_id and seq = new.seq;
     return null;
   end if;`,
);

/** A device is announced offline but not stored so, so every sweep of every node finds it again. */
export const OFFLINE_IS_FORGOTTEN =
  spoil("device_presence", "update", "if new.connectivity = 'none' then new.connectivity := old.connectivity; end if;") +
  spoil("devices", "update", "if new.status = 'offline' then new.status := old.status; end if;");

/** The end of an old connection overwrites the new one, and what the new one writes next. */
export const LATE_CLOSE_WINS = spoil(
  "device_presence",
  "update",
  `if new.epoch > old.epoch and old.epoch > 0 or old.last_seen_at = 'epoch' and new.connectivity = 'realtime' then
     new.offline_after := now() - interval '1 second'; new.last_seen_at := 'epoch';
   end if;`,
);

/** What a session sent is never written as sent, so it seems never to have been sent. */
export const SENT_IS_NOT_WRITTEN = spoil("command_queue", "update", "if old.status = 'queued' and new.status = 'sent' then return null; end if;");

/** The epoch never rises, so a newer session looks like the older one. */
export const EPOCH_STANDS_STILL = spoil("device_presence", "update", "new.epoch := old.epoch;");

/** Waiting commands of a lane do not block each other, so any may go first. */
export const LANES_ARE_OPEN = spoil("command_queue", "insert", "new.lane := new.command_id; new.priority := 1 + floor(random() * 8);");

/** The same for both rows of a command. */
const MIX_UP_ADDRESS = `if new.seq % 5 = 0 then
     select device_id into new.device_id from devices where tenant_id = new.tenant_id and device_id <> new.device_id and deleted_at is null
      order by md5(device_id || new.command_id) limit 1;
     new.seq := 1000000 + ('x' || left(md5(new.command_id), 12))::bit(48)::bigint;
   end if;`;
/** Every fifth command is written to another device of the tenant. */
export const ADDRESS_IS_MIXED_UP = spoil("commands", "insert", MIX_UP_ADDRESS) + spoil("command_queue", "insert", MIX_UP_ADDRESS);

/** A success is answered but not stored: the command looks as if nobody had answered. */
export const SUCCESS_IS_FORGOTTEN = spoil("commands", "update", "if new.status = 'succeeded' then new.status := 'timed_out'; end if;");

/** The transaction of an effect does not store its key; see lost-commits.ts. */
export const KEY_IS_KEPT_BESIDE = spoil("idempotency_keys", "insert", "return null;");

/** One attempt counts as enough, whatever the receiver answered. */
export const DELIVERED_IS_ENOUGH = spoil(
  "webhook_deliveries",
  "update",
  "if new.status = 'retrying' then new.status := 'succeeded'; new.next_attempt_at := null; new.completed_at := now(); end if;",
);

/** What waits for its next attempt lets later events of its subject pass. */
export const RETRIES_HOLD_NOTHING = spoil("webhook_deliveries", "insert or update", "new.holds_until := 'epoch';");

/** Half of the reports that a deployment failed are lost. */
export const SOME_FAILURES_ARE_LOST = spoil(
  "outbox_events",
  "insert",
  "if new.type = 'deployment.failed' and md5(new.subject_id) < '8' then return null; end if;",
);

/** A sabotage that ends before the next one begins. */
const passing = (table: string, when: "insert" | "update", body: string) => ({
  make: spoil(table, when, body),
  undo: `drop function spoil_${table}_${when}() cascade;`,
});

/** Steps stay between their reads and their writes, so two that nothing keeps apart overlap. */
export const STEPS_TAKE_LONG = {
  make: `create function slow_steps() returns trigger language plpgsql as $slow$ begin perform pg_sleep(1.2); return null; end $slow$;
    create trigger slow_steps before update on rollout_devices for each statement execute function slow_steps();`,
  undo: "drop function slow_steps() cascade;",
};

/** The figures of a rollout are not written with its rows, and some never, as by a node that was killed in between. */
export const COUNTERS_ARE_WRITTEN_BESIDE = passing(
  "rollouts",
  "update",
  "if old.ordered > 0 and random() < 0.4 then new.ordered := old.ordered; new.succeeded := old.succeeded; new.pending := old.pending; end if;",
);

/** Orders are written after the rows that tell of them, and some never. */
const LOST_ORDER = "if md5(new.command_id) < '6' then return null; end if;";
export const ORDERS_COME_AFTER_THE_COMMIT = {
  make: spoil("commands", "insert", LOST_ORDER) + spoil("command_queue", "insert", LOST_ORDER),
  undo: "drop function spoil_commands_insert() cascade; drop function spoil_command_queue_insert() cascade;",
};

/** A rollout takes a thousand devices for done in each phase, so its ramp bounds nothing. */
export const RAMP_IS_OPEN = passing(
  "rollouts",
  "update",
  "new.phases := (select coalesce(jsonb_agg(p || jsonb_build_object('succeeded', 1000)), '[]') from jsonb_array_elements(new.phases) p);",
);

/** The counts of a bulk operation are not written with its items, and some never. */
export const ITEMS_ARE_COUNTED_BESIDE = spoil(
  "bulk_operations",
  "update",
  "if new.succeeded > old.succeeded and random() < 0.4 then new.succeeded := old.succeeded; new.pending := old.pending; end if;",
);

/** A read takes 0.1 s for each command of this type, as on a disk that fails. Row security does not bind a superuser, so sessions begin as another role. */
export const ROWS_ARE_SLOW = `create function slow_row(type text) returns boolean language plpgsql as $slow$
    begin if type = 'slow' then perform pg_sleep(0.1); end if; return true; end $slow$;
  alter table commands enable row level security;
  create policy slow_rows on commands using (slow_row(type)) with check (true);
  create role bound;
  grant create on schema public to bound;
  grant all on all tables in schema public to bound;
  grant all on all sequences in schema public to bound;
  alter role current_user set role = bound;`;
