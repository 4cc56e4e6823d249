// SHA-256 and HMAC, for the agents' signatures: the load generator needs nothing but the C library.
#include "load.h"
#include <string.h>

struct sha { uint32_t h[8]; uint8_t block[64]; uint64_t length; };

static const uint32_t K[64] = {
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74,
  0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d,
  0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e,
  0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5,
  0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t turn(uint32_t x, int by) { return x >> by | x << (32 - by); }

static void mix(struct sha *s) {
  uint32_t w[64], v[8];
  for (int i = 0; i < 16; i++)
    w[i] = (uint32_t)s->block[i * 4] << 24 | s->block[i * 4 + 1] << 16 | s->block[i * 4 + 2] << 8 | s->block[i * 4 + 3];
  for (int i = 16; i < 64; i++) {
    uint32_t a = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3, b = turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + a + w[i - 7] + b;
  }
  memcpy(v, s->h, sizeof v);
  for (int i = 0; i < 64; i++) {
    uint32_t a = v[7] + (turn(v[4], 6) ^ turn(v[4], 11) ^ turn(v[4], 25)) + ((v[4] & v[5]) ^ (~v[4] & v[6])) + K[i] + w[i];
    uint32_t b = (turn(v[0], 2) ^ turn(v[0], 13) ^ turn(v[0], 22)) + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
    memmove(v + 1, v, 7 * sizeof *v);
    v[4] += a;
    v[0] = a + b;
  }
  for (int i = 0; i < 8; i++) s->h[i] += v[i];
}

static void begin(struct sha *s) {
  static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  memcpy(s->h, start, sizeof start);
  s->length = 0;
}

static void add(struct sha *s, const void *bytes, size_t length) {
  const uint8_t *at = bytes;
  while (length-- > 0) {
    s->block[s->length++ % 64] = *at++;
    if (s->length % 64 == 0) mix(s);
  }
}

static void finish(struct sha *s, uint8_t digest[32]) {
  uint64_t bits = s->length * 8;
  add(s, "\x80", 1);
  while (s->length % 64 != 56) add(s, "", 1);
  uint8_t tail[8];
  for (int i = 0; i < 8; i++) tail[i] = (uint8_t)(bits >> (56 - 8 * i));
  add(s, tail, 8);
  for (int i = 0; i < 32; i++) digest[i] = (uint8_t)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}

void hmac_hex(const char *key, const char *a, const char *b, char hex[65]) {
  struct sha s;
  uint8_t pad[64] = {0}, digest[32];
  size_t length = strlen(key);
  if (length > 64) {
    begin(&s);
    add(&s, key, length);
    finish(&s, pad);
  } else memcpy(pad, key, length);
  for (int i = 0; i < 64; i++) pad[i] ^= 0x36;
  begin(&s);
  add(&s, pad, 64);
  add(&s, a, strlen(a));
  add(&s, b, strlen(b));
  finish(&s, digest);
  for (int i = 0; i < 64; i++) pad[i] ^= 0x36 ^ 0x5c;
  begin(&s);
  add(&s, pad, 64);
  add(&s, digest, 32);
  finish(&s, digest);
  for (int i = 0; i < 32; i++) {
    hex[2 * i] = "0123456789abcdef"[digest[i] >> 4];
    hex[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
  }
  hex[64] = 0;
}
