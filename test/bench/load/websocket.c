// A WebSocket client: the upgrade, masked frames out, frames in, and the plain echo protocol.
#include "load.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FRAME 65535

int read_frame(uint8_t *bytes, int length, struct frame *frame) {
  if (length < 2) return 0;
  int head = 2, size = bytes[1] & 127;
  if (size == 126) {
    if (length < 4) return 0;
    size = bytes[2] << 8 | bytes[3];
    head = 4;
  } else if (size == 127) return -1;
  if (length < head + size) return 0;
  *frame = (struct frame){.opcode = bytes[0] & 15, .bytes = bytes + head, .length = size, .total = head + size};
  return frame->total;
}

void send_frame(struct conn *c, int opcode, const void *bytes, int length) {
  uint8_t text[MAX_FRAME + 16];
  int head = length < 126 ? 2 : 4;
  text[0] = (uint8_t)(0x80 | opcode);
  text[1] = (uint8_t)(0x80 | (length < 126 ? length : 126));
  if (head == 4) text[2] = (uint8_t)(length >> 8), text[3] = (uint8_t)length;
  memcpy(text + head, &c->mask, 4);
  uint64_t wide = (uint64_t)c->mask << 32 | c->mask, word;
  const uint8_t *from = bytes;
  uint8_t *to = text + head + 4;
  int at = 0;
  for (; at + 8 <= length; at += 8) {
    memcpy(&word, from + at, 8);
    word ^= wide;
    memcpy(to + at, &word, 8);
  }
  for (; at < length; at++) to[at] = from[at] ^ (uint8_t)(c->mask >> 8 * (at % 4));
  put(c, text, head + 4 + length);
}

void send_text(struct conn *c, const char *text, int length) { send_frame(c, 1, text, length); }

void send_upgrade(struct conn *c, const char *path, const char *headers) {
  char text[2048];
  int length = snprintf(text, sizeof text,
                        "GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n%s\r\n",
                        path, host_name, headers);
  put(c, text, length);
}

int read_upgrade(uint8_t *bytes, int length) {
  uint8_t *end = memmem(bytes, length, "\r\n\r\n", 4);
  if (!end) return 0;
  return length > 12 && !memcmp(bytes + 9, "101", 3) ? (int)(end - bytes) + 4 : -1;
}

uint64_t number_after(const uint8_t *bytes, int length, const char *key) {
  const uint8_t *at = memmem(bytes, length, key, strlen(key));
  uint64_t number = 0;
  if (at)
    for (at += strlen(key); at < bytes + length && *at >= '0' && *at <= '9'; at++) number = number * 10 + (*at - '0');
  return number;
}

/** The reference agent's heartbeat; a share of them has its members in another order and its metrics in the other form. */
int heartbeat(struct conn *c, char *text) {
  const char *now = timestamp();
  unsigned cpu = c->value % 1000, memory = c->value / 1000 % 1000, disk = c->value / 1000000 % 1000;
  unsigned long long id = c->asked;
  if (mixed_percent > 0 && (int)(noise() % 100) < mixed_percent)
    return sprintf(text, "{\"id\":\"%llu\",\"data\":{\"timestamp\":\"%s\",\"disk\":%u.%u,\"memory\":%u.%u,\"cpu\":%u.%u},\"ts\":\"%s\",\"op\":\"heartbeat\"}", id, now,
                   disk / 10, disk % 10, memory / 10, memory % 10, cpu / 10, cpu % 10, now);
  return sprintf(text,
                 "{\"op\":\"heartbeat\",\"id\":\"%llu\",\"ts\":\"%s\",\"data\":{\"status\":\"online\",\"metrics\":{\"cpu\":%u.%u,\"memory\":%u.%u,"
                 "\"uptimeSeconds\":%u},\"inFlight\":[]}}",
                 id, now, cpu / 10, cpu % 10, memory / 10, memory % 10, 100000 + c->value % 900000);
}

static void open_echo(struct conn *c) { send_upgrade(c, "/", ""); }

static void ask_echo(struct conn *c) {
  char text[512];
  c->value = (uint32_t)(noise() % 1000000000);
  send_text(c, text, heartbeat(c, text));
}

static int take_echo(struct conn *c, uint8_t *bytes, int length) {
  if (c->stage == OPENING) {
    int end = read_upgrade(bytes, length);
    if (end > 0) reached(c, OPENING), reached(c, READY);
    return end;
  }
  struct frame frame;
  int used = read_frame(bytes, length, &frame);
  if (used <= 0) return used;
  if (frame.opcode == 9) send_frame(c, 10, frame.bytes, frame.length);
  else if (frame.opcode == 1) answered(c, number_after(frame.bytes, frame.length, "\"id\":\""));
  else if (frame.opcode == 8) return -1;
  return used;
}

const struct protocol ws_protocol = {"ws", open_echo, take_echo, ask_echo};
