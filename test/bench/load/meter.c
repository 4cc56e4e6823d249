// CPU time of whole process trees in nanoseconds, from the scheduler's statistics, sampled with the counters of a window.
#include "load.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_METERS 24
static struct { char name[40]; int pid; uint64_t before, now; } meters[MAX_METERS];
static int meter_count;
static uint64_t busy_before, busy_now;

int watch(const char *name, int pid) {
  if (meter_count == MAX_METERS) return -1;
  snprintf(meters[meter_count].name, sizeof meters->name, "%s", name);
  meters[meter_count++].pid = pid;
  return 0;
}

static int slurp(const char *path, char *text, int capacity) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  int length = (int)read(fd, text, capacity - 1);
  close(fd);
  text[length > 0 ? length : 0] = 0;
  return length;
}

/** Adds up every thread of the process and its descendants. */
static uint64_t used_by(int pid) {
  char path[96], text[4096];
  uint64_t total = 0;
  snprintf(path, sizeof path, "/proc/%d/task", pid);
  DIR *tasks = opendir(path);
  if (!tasks) return 0;
  for (struct dirent *task; (task = readdir(tasks));) {
    if (task->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "/proc/%d/task/%.20s/schedstat", pid, task->d_name);
    if (slurp(path, text, sizeof text) > 0) total += strtoull(text, NULL, 10);
    snprintf(path, sizeof path, "/proc/%d/task/%.20s/children", pid, task->d_name);
    if (slurp(path, text, sizeof text) > 0)
      for (char *at = text, *end; strtol(at, &end, 10) > 0 && end != at; at = end) total += used_by((int)strtol(at, NULL, 10));
  }
  closedir(tasks);
  return total;
}

/** Busy time of all processors; time that the hypervisor took counts as foreign use. */
static uint64_t busy(void) {
  char text[256];
  unsigned long long user = 0, nice = 0, system = 0, idle = 0, wait = 0, hard = 0, soft = 0, stolen = 0;
  if (slurp("/proc/stat", text, sizeof text) <= 0) return 0;
  sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle, &wait, &hard, &soft, &stolen);
  return (user + nice + system + hard + soft + stolen) * (1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK));
}

void sample_meters(void) {
  busy_before = busy_now;
  busy_now = busy();
  for (int i = 0; i < meter_count; i++) {
    meters[i].before = meters[i].now;
    meters[i].now = used_by(meters[i].pid);
  }
}

int print_meters(char *text, int capacity) {
  int length = snprintf(text, capacity, "\"busyNs\":%llu,\"cpuNs\":{", (unsigned long long)(busy_now - busy_before));
  for (int i = 0; i < meter_count; i++)
    length += snprintf(text + length, capacity - length, "%s\"%s\":%llu", i ? "," : "", meters[i].name,
                       (unsigned long long)(meters[i].now > meters[i].before ? meters[i].now - meters[i].before : 0));
  return length + snprintf(text + length, capacity - length, "}");
}
