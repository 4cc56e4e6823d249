// MQTT 3.1.1 with QoS 1: it publishes the heartbeat, which counts once the broker acknowledges its packet.
#include "load.h"
#include <stdio.h>
#include <string.h>

static int put_text(uint8_t *to, const char *text) {
  int length = (int)strlen(text);
  to[0] = (uint8_t)(length >> 8);
  to[1] = (uint8_t)length;
  memcpy(to + 2, text, length);
  return length + 2;
}

static int head(uint8_t *to, int type, int length) {
  int at = 0;
  to[at++] = (uint8_t)type;
  for (; length > 127; length >>= 7) to[at++] = (uint8_t)(length | 128);
  to[at++] = (uint8_t)length;
  return at;
}

static void open_mqtt(struct conn *c) {
  char name[32];
  uint8_t words[64], packet[96];
  snprintf(name, sizeof name, "agent-%d", c->number);
  int length = put_text(words, "MQTT");
  memcpy(words + length, "\x04\x02\x01\x2c", 4);
  length += 4;
  length += put_text(words + length, name);
  int at = head(packet, 0x10, length);
  memcpy(packet + at, words, length);
  put(c, packet, at + length);
}

/** Packet numbers are 16 bits wide and never 0. */
static unsigned packet_number(uint64_t asked) { return (unsigned)(asked % 65535) + 1; }

static void ask_publish(struct conn *c) {
  char topic[48], text[512];
  uint8_t body[640], packet[672];
  c->value = (uint32_t)(noise() % 1000000000);
  snprintf(topic, sizeof topic, "agents/%d/heartbeat", c->number);
  int length = put_text(body, topic);
  unsigned number = packet_number(c->asked);
  body[length++] = (uint8_t)(number >> 8);
  body[length++] = (uint8_t)number;
  int words = heartbeat(c, text);
  memcpy(body + length, text, words);
  length += words;
  int at = head(packet, 0x32, length);
  memcpy(packet + at, body, length);
  put(c, packet, at + length);
}

static int take_mqtt(struct conn *c, uint8_t *bytes, int length) {
  if (length < 2 || length < 2 + bytes[1]) return 0;
  int type = bytes[0] >> 4;
  if (type == 2) {
    if (bytes[3] != 0) return -1;
    reached(c, OPENING);
    reached(c, READY);
  } else if (type == 4) {
    unsigned number = (unsigned)bytes[2] << 8 | bytes[3];
    answered(c, number == packet_number(c->answered + 1) ? c->answered + 1 : 0);
  } else if (type != 13) return -1;
  return 2 + bytes[1];
}

const struct protocol mqtt_protocol = {"mqtt", open_mqtt, take_mqtt, ask_publish};
