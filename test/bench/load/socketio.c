// socket.io over its WebSocket transport: the event carries the heartbeat and asks for the library's acknowledgement.
#include "load.h"
#include <stdio.h>
#include <string.h>

static void open_socketio(struct conn *c) { send_upgrade(c, "/socket.io/?EIO=4&transport=websocket", ""); }

static void ask_event(struct conn *c) {
  char beat[512], text[600];
  c->value = (uint32_t)(noise() % 1000000000);
  heartbeat(c, beat);
  send_text(c, text, snprintf(text, sizeof text, "42%llu[\"heartbeat\",%s]", (unsigned long long)c->asked, beat));
}

/** Engine.io 0 opens, 2 pings; socket.io 40 connects, 43<id>[...] acknowledges. */
static void hear(struct conn *c, const struct frame *f) {
  if (f->length < 1) return;
  if (f->bytes[0] == '0') send_text(c, "40", 2);
  else if (f->bytes[0] == '2') send_text(c, "3", 1);
  else if (f->length > 1 && f->bytes[0] == '4' && f->bytes[1] == '0') reached(c, READY);
  else if (f->length > 2 && f->bytes[0] == '4' && f->bytes[1] == '3') answered(c, number_after(f->bytes, f->length, "\"ref\":\""));
  else count.errors++;
}

static int take_socketio(struct conn *c, uint8_t *bytes, int length) {
  if (c->stage == OPENING) {
    int end = read_upgrade(bytes, length);
    if (end > 0) reached(c, OPENING), c->stage = GREETING;
    return end;
  }
  struct frame frame;
  int used = read_frame(bytes, length, &frame);
  if (used <= 0) return used;
  if (frame.opcode == 9) send_frame(c, 10, frame.bytes, frame.length);
  else if (frame.opcode == 1) hear(c, &frame);
  else if (frame.opcode == 8) return -1;
  return used;
}

const struct protocol socketio_protocol = {"socketio", open_socketio, take_socketio, ask_event};
