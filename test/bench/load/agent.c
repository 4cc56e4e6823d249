// An agent of the gateway: signed upgrade, hello with proof, heartbeats, and an ack for every command.
#include "load.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *PATH = "/v1/agent/connect";

static void open_agent(struct conn *c) {
  struct identity *who = &identities[c->number];
  char signature[65], headers[512];
  const char *now = timestamp();
  hmac_hex(who->secret, "", now, signature);
  snprintf(headers, sizeof headers,
           "Sec-WebSocket-Protocol: mooring-agent.v1\r\nx-svc-agent-id: %s\r\nx-svc-tenant-id: %s\r\nx-svc-timestamp: %s\r\nx-svc-signature: %s\r\n", who->agent,
           who->tenant, now, signature);
  send_upgrade(c, PATH, headers);
}

/** Copies the string after the key; returns 0 if there is none. */
static int text_after(const struct frame *f, const char *key, char *text, int capacity) {
  const uint8_t *at = memmem(f->bytes, f->length, key, strlen(key)), *end;
  if (!at) return 0;
  at += strlen(key);
  end = memchr(at, '"', f->bytes + f->length - at);
  if (!end || end - at >= capacity) return 0;
  memcpy(text, at, end - at);
  text[end - at] = 0;
  return 1;
}

static void hello(struct conn *c, const struct frame *f) {
  char nonce[128], signature[65], text[1024];
  const char *now = timestamp();
  if (!text_after(f, "\"nonce\":\"", nonce, sizeof nonce)) return drop(c);
  hmac_hex(identities[c->number].secret, nonce, now, signature);
  c->asked = c->answered = 1;
  int length = snprintf(text, sizeof text,
                        "{\"op\":\"hello\",\"id\":\"1\",\"ts\":\"%s\",\"data\":{\"proof\":{\"timestamp\":\"%s\",\"signature\":\"%s\"},\"agentVersion\":\"0.1.0\","
                        "\"instanceId\":\"i%d\",\"hostname\":\"h%d\",\"os\":\"linux\",\"arch\":\"x64\",\"capabilities\":[\"journal.v1\",\"cancel.v1\"],"
                        "\"maxInFlight\":32,\"inFlight\":[]}}",
                        now, now, signature, c->number, c->number);
  c->stage = GREETING;
  send_text(c, text, length);
}

static void obey(struct conn *c, const struct frame *f) {
  char command[64], text[256];
  count.commands++;
  if (!text_after(f, "\"commandId\":\"", command, sizeof command)) {
    count.wrong++;
    return;
  }
  uint64_t due = number_after(f->bytes, f->length, "\"text\":\"@");
  if (due) pushed(due);
  // Acks and heartbeats share the connection's numbers; each benchmark sends only one of the two.
  c->answered = ++c->asked;
  int length = snprintf(text, sizeof text, "{\"op\":\"ack\",\"id\":\"%llu\",\"ts\":\"%s\",\"data\":{\"commandId\":\"%s\",\"status\":\"succeeded\"}}",
                        (unsigned long long)c->asked, timestamp(), command);
  count.acks++;
  send_text(c, text, length);
}

static void hear(struct conn *c, const struct frame *f) {
  static const char beat[] = "{\"op\":\"heartbeat_ack\"", order[] = "{\"op\":\"command\"", thanks[] = "{\"op\":\"ack_ok\"", ready[] = "{\"op\":\"ready\"",
                    welcome[] = "{\"op\":\"welcome\"";
  const size_t length = (size_t)f->length;
#define IS(word) (length >= sizeof word - 1 && !memcmp(f->bytes, word, sizeof word - 1))
  if (IS(beat)) answered(c, number_after(f->bytes, f->length, "\"ref\":\""));
  else if (IS(order)) obey(c, f);
  else if (IS(thanks)) {
    if (memmem(f->bytes, length, "\"result\":\"applied\"", 18)) count.applied++;
    else if (memmem(f->bytes, length, "\"result\":\"duplicate\"", 20)) count.duplicates++;
    else count.wrong++;
  } else if (IS(ready)) reached(c, READY);
  else if (IS(welcome)) hello(c, f);
  else if (!memmem(f->bytes, length, "\"op\":\"config\"", 13)) {
    count.errors++;
    if (count.errors < 4) fprintf(stderr, "the gateway sent an error: %.*s\n", f->length, f->bytes);
  }
#undef IS
}

static int take_agent(struct conn *c, uint8_t *bytes, int length) {
  if (c->stage == OPENING) {
    int end = read_upgrade(bytes, length);
    if (end > 0) reached(c, OPENING), c->stage = GREETING;
    else if (end < 0 && count.refused < 3) fprintf(stderr, "refused: %.*s\n", length, bytes);
    return end;
  }
  struct frame frame;
  int used = read_frame(bytes, length, &frame);
  if (used <= 0) return used;
  if (frame.opcode == 9) send_frame(c, 10, frame.bytes, frame.length);
  else if (frame.opcode == 1) hear(c, &frame);
  else if (frame.opcode == 8) {
    if (count.lost < 3) fprintf(stderr, "closed: %d %.*s\n", frame.length > 1 ? frame.bytes[0] << 8 | frame.bytes[1] : 0, frame.length > 2 ? frame.length - 2 : 0, frame.bytes + 2);
    return -1;
  }
  return used;
}

static void ask_beat(struct conn *c) {
  char text[512];
  c->value = (uint32_t)(noise() % 1000000000);
  send_text(c, text, heartbeat(c, text));
}

const struct protocol agent_protocol = {"agent", open_agent, take_agent, ask_beat};
