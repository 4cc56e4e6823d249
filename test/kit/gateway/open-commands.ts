// Puts open commands into the queue behind the feature's back.

export interface OpenCommand {
  readonly commandId: string;
  readonly tenantId: string;
  readonly deviceId: string;
  /** By default the device's next number. */
  readonly seq?: number;
  readonly lane?: string;
  readonly status?: string;
  readonly payload?: string;
  readonly requiresAck?: boolean;
  /** Intervals from now. */
  readonly deadline?: string;
  readonly available?: string;
}

const INSERT = `
  with given as (
    select $1::text as command_id, $2::text as tenant_id, $3::text as device_id, $5::text as lane, $6::text as status, $7::jsonb as payload, $8::boolean as requires_ack,
      coalesce($4::bigint, (select next_command_seq from devices where device_id = $3), 1) as seq,
      case when $9::text is null then 'infinity'::timestamptz else now() + $9::text::interval end as deadline_at, now() + $10::text::interval as available_at),
  facts as (
    insert into commands (command_id, tenant_id, device_id, seq, lane, type, payload, requires_ack, available_at, exec_timeout_s, created_by)
    select command_id, tenant_id, device_id, seq, lane, 'ping', payload, requires_ack, available_at, 900, 'test' from given),
  counted as (update devices d set next_command_seq = g.seq + 1 from given g where d.device_id = g.device_id and d.next_command_seq <= g.seq)
  insert into command_queue (tenant_id, device_id, seq, command_id, lane, priority, status, deadline_at, available_at, requires_ack, redeliver_safe, max_attempts, history)
  select tenant_id, device_id, seq, command_id, lane, 5, status, deadline_at, available_at, requires_ack, true, 10, '[]' from given`;

export const insertOpenCommand = (query: (text: string, values: unknown[]) => Promise<unknown>, command: OpenCommand): Promise<unknown> => {
  const { commandId, tenantId, deviceId, seq = null, lane = `cmd:${commandId}`, status = "queued" } = command;
  const { payload = "{}", requiresAck = true, deadline = null, available = "0 s" } = command;
  return query(INSERT, [commandId, tenantId, deviceId, seq, lane, status, payload, requiresAck, deadline, available]);
};
