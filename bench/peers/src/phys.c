/* Physical limits of this machine: memcpy and c=a+b bandwidth by working set, cache-line and futex ping-pong,
 * process_vm_readv, loopback TCP bandwidth and ping-pong (blocking, and spinning on a non-blocking socket).
 * One JSON line per figure.  gcc -O3 -march=native -pthread phys.c */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/futex.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}
static void pin(int cpu) {
  cpu_set_t s;
  CPU_ZERO(&s);
  CPU_SET(cpu, &s);
  sched_setaffinity(0, sizeof s, &s);
}
static int cmp(const void* a, const void* b) {
  double x = *(double*)a, y = *(double*)b;
  return (x > y) - (x < y);
}
static void out(const char* what, int world, size_t bytes, double* t, int n) {
  qsort(t, n, sizeof *t, cmp);
  printf(
      "{\"peer\":\"phys\",\"case\":\"%s\",\"world\":%d,\"bytes\":%zu,\"us_median\":%.3f,\"us_min\":%.3f,"
      "\"reps\":%d}\n",
      what, world, bytes, t[n / 2], t[0], n);
  fflush(stdout);
}

/* ---- memory: each thread works on its own slice; bytes = size of ONE array, over all threads ---- */
enum { COPY, ADD, ADDIN, ALL2, ALL4 };
typedef struct {
  int kind, cpu, reps, inner;
  size_t n;
  float *a, *b, *c, *d;
  pthread_barrier_t* bar;
  double* t;
} Job;
__attribute__((noinline)) static void add(float* restrict c, const float* restrict a, const float* restrict b,
                                          size_t n) {
  for (size_t i = 0; i < n; i++) c[i] = a[i] + b[i];
}
__attribute__((noinline)) static void addin(float* restrict c, const float* restrict a, size_t n) {
  for (size_t i = 0; i < n; i++) c[i] += a[i];
}
/* the ideal all-reduce: every input read once, every output written once, in place */
__attribute__((noinline)) static void all2(float* restrict a, float* restrict b, size_t n) {
  for (size_t i = 0; i < n; i++) a[i] = b[i] = a[i] + b[i];
}
__attribute__((noinline)) static void all4(float* restrict a, float* restrict b, float* restrict c,
                                           float* restrict d, size_t n) {
  for (size_t i = 0; i < n; i++) a[i] = b[i] = c[i] = d[i] = (a[i] + b[i]) + (c[i] + d[i]);
}
static void* mem_thread(void* p) {
  Job* j = p;
  pin(j->cpu);
  for (size_t i = 0; i < j->n; i++) j->a[i] = j->b[i] = j->c[i] = j->d[i] = 0;
  for (int r = -1; r < j->reps; r++) {
    pthread_barrier_wait(j->bar);
    double t0 = now();
    for (int k = 0; k < j->inner; k++) {
      if (j->kind == COPY)
        memcpy(j->c, j->a, j->n * 4);
      else if (j->kind == ADD)
        add(j->c, j->a, j->b, j->n);
      else if (j->kind == ADDIN)
        addin(j->c, j->a, j->n);
      else if (j->kind == ALL2)
        all2(j->a, j->b, j->n);
      else
        all4(j->a, j->b, j->c, j->d, j->n);
      __asm__ volatile("" ::: "memory");
    }
    pthread_barrier_wait(j->bar);
    if (r >= 0) j->t[r] = (now() - t0) / j->inner;
  }
  return 0;
}
static void mem(int kind, const char* name, int threads, size_t bytes, int huge) {
  size_t n = bytes / 4 / threads;
  int reps = 15;
  int inner = bytes < (32u << 20) ? (int)((64u << 20) / bytes) : 1;
  pthread_barrier_t bar;
  pthread_barrier_init(&bar, 0, threads);
  Job j[2];
  pthread_t th[2];
  double t[2][64];
  for (int i = 0; i < threads; i++) {
    float* m[4];
    for (int k = 0; k < 4; k++) {
      m[k] = aligned_alloc(2 << 20, (n * 4 + (2 << 20) - 1) & ~((size_t)(2 << 20) - 1));
      madvise(m[k], n * 4, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    }
    j[i] = (Job){kind, i, reps, inner, n, m[0], m[1], m[2], m[3], &bar, t[i]};
    pthread_create(&th[i], 0, mem_thread, &j[i]);
  }
  for (int i = 0; i < threads; i++)
    pthread_join(th[i], 0), free(j[i].a), free(j[i].b), free(j[i].c), free(j[i].d);
  out(name, threads, bytes, t[0], reps);
}

/* ---- fresh memory: map, touch every page, unmap: what a call pays that allocates its buffers anew ---- */
static void fresh(const char* name, size_t n, int advice) {
  double t[15];
  for (int r = 0; r < 15; r++) {
    double t0 = now();
    char* m = mmap(0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(m, n, advice);
    for (size_t i = 0; i < n; i += 4096) m[i] = 1;
    munmap(m, n);
    t[r] = now() - t0;
  }
  out(name, 1, n, t, 15);
}

/* ---- cache line: two threads bounce one line; one-way = half a round trip ---- */
static _Alignas(128) atomic_int line;
static int bounces;
static void* pong(void* p) {
  (void)p;
  pin(1);
  for (int i = 0; i < bounces; i += 2) {
    while (atomic_load_explicit(&line, memory_order_acquire) != i + 1);
    atomic_store_explicit(&line, i + 2, memory_order_release);
  }
  return 0;
}
/* t: so many means, each of so many ways */
static void bounce(double* t, int means, int ways) {
  atomic_store(&line, 0);
  bounces = means * ways;
  pthread_t th;
  pthread_create(&th, 0, pong, 0);
  pin(0);
  double t0 = now();
  for (int i = 0; i < bounces; i += 2) {
    atomic_store_explicit(&line, i + 1, memory_order_release);
    while (atomic_load_explicit(&line, memory_order_acquire) != i + 2);
    if (i % ways == ways - 2) {
      double n = now();
      t[i / ways] = (n - t0) / ways;
      t0 = n;
    }
  }
  pthread_join(th, 0);
}
static void cacheline(void) {
  static double t[20];
  bounce(t, 20, 100000);
  out("cacheline_one_way", 2, 64, t, 20);
}
/* Some milliseconds: how far the first two cores are from each other just now. */
static void distance(void) {
  static double t[15];
  bounce(t, 15, 1000);
  qsort(t, 15, sizeof *t, cmp);
  printf("%.0f\n", t[7] * 1e3);
}

/* ---- futex: the same bounce, asleep while waiting; on two cores, and both threads on one core ---- */
static _Alignas(128) atomic_int word;
static int pong_cpu;
static void until(int v) {
  for (int x; (x = atomic_load(&word)) != v;) syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, x, 0, 0, 0);
}
static void set(int v) {
  atomic_store(&word, v);
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}
static void* fpong(void* p) {
  (void)p;
  pin(pong_cpu);
  for (int i = 0; i < 8000; i += 2) {
    until(i + 1);
    set(i + 2);
  }
  return 0;
}
static void futex(const char* name, int cpu) {
  pthread_t th;
  static double t[4000];
  word = 0;
  pong_cpu = cpu;
  pthread_create(&th, 0, fpong, 0);
  pin(0);
  for (int i = 0; i < 8000; i += 2) {
    double t0 = now();
    set(i + 1);
    until(i + 2);
    t[i / 2] = (now() - t0) / 2;
  }
  pthread_join(th, 0);
  out(name, 2, 4, t, 4000);
}

/* ---- process_vm_readv (what MPIs call CMA): read another process's memory, one copy ---- */
static void cma(size_t n) {
  char *theirs = malloc(n), *mine = malloc(n);
  memset(theirs, 1, n);
  memset(mine, 2, n);
  static double t[200];
  pid_t child = fork();
  if (!child) {
    memset(theirs, 3, n);
    pause();
  }
  usleep(200000);
  pin(0);
  for (int r = -2; r < 50; r++) {
    struct iovec l = {mine, n}, o = {theirs, n};
    double t0 = now();
    for (size_t got = 0; got < n;) {
      l = (struct iovec){mine + got, n - got};
      o = (struct iovec){theirs + got, n - got};
      ssize_t k = process_vm_readv(child, &l, 1, &o, 1, 0);
      if (k <= 0) {
        perror("process_vm_readv");
        break;
      }
      got += k;
    }
    if (r >= 0) t[r] = now() - t0;
  }
  kill(child, 9);
  waitpid(child, 0, 0);
  out("process_vm_readv", 1, n, t, 50);
  free(theirs);
  free(mine);
}

/* ---- TCP on loopback ---- */
static int spin;
static void io(int fd, char* b, size_t n, int wr) {
  while (n) {
    ssize_t k = wr ? send(fd, b, n, spin) : recv(fd, b, n, spin);
    if (k < 0 && errno == EAGAIN) continue;
    if (k <= 0) exit(1);
    b += k;
    n -= k;
  }
}
static void exchange(
    int fd, char* b,
    size_t n) { /* n bytes each way at once: what two ranks must move for an all-reduce of n bytes */
  size_t s = 0, r = 0, part = 256 << 10;
  while (s < n || r < n) {
    ssize_t k;
    if (s < n && (k = send(fd, b + s, n - s < part ? n - s : part, MSG_DONTWAIT)) > 0) s += k;
    if (r < n && (k = recv(fd, b + n + r, n - r < part ? n - r : part, MSG_DONTWAIT)) > 0) r += k;
  }
}
static void tcp(const char* cc, int nonblock) {
  int l = socket(AF_INET, SOCK_STREAM, 0), one = 1;
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t len = sizeof a;
  bind(l, (void*)&a, sizeof a);
  listen(l, 1);
  getsockname(l, (void*)&a, &len);
  size_t big = 64u << 20, sizes[] = {4, 1024, 16384, 262144};
  char *buf = malloc(2 * big), name[64];
  memset(buf, 1, 2 * big);
  static double t[2000];
  const char* how = nonblock ? "spin" : "blocking";
  spin = nonblock ? MSG_DONTWAIT : 0;
  pid_t child = fork();
  int fd;
  if (!child) {
    fd = socket(AF_INET, SOCK_STREAM, 0);
    connect(fd, (void*)&a, sizeof a);
    pin(1);
  } else {
    fd = accept(l, 0, 0);
    pin(0);
  }
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, cc, strlen(cc))) perror(cc);
  for (int s = 0; s < 4; s++) {
    for (int r = -50; r < 2000; r++) {
      double t0 = now();
      io(fd, buf, sizes[s], !!child);
      io(fd, buf, sizes[s], !child);
      if (r >= 0) t[r] = (now() - t0) / 2;
    }
    snprintf(name, sizeof name, "tcp_one_way_%s_%s", how, cc);
    if (child) out(name, 2, sizes[s], t, 2000);
  }
  for (int r = -2; r < 15; r++) {
    char c = 0;
    double t0 = now();
    io(fd, buf, big, !!child);
    io(fd, &c, 1, !child);
    if (r >= 0) t[r] = now() - t0;
  }
  double u[15];
  for (int r = -2; r < 15; r++) {
    double t0 = now();
    exchange(fd, buf, big);
    if (r >= 0) u[r] = now() - t0;
  }
  if (!child) _exit(0);
  snprintf(name, sizeof name, "tcp_stream_%s_%s", how, cc);
  out(name, 2, big, t, 15);
  if (nonblock) {
    snprintf(name, sizeof name, "tcp_duplex_%s", cc);
    out(name, 2, big, u, 15);
  }
  waitpid(child, 0, 0);
  close(fd);
  close(l);
  free(buf);
}

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "distance") == 0) {
    distance();
    return 0;
  }
  size_t ws[] = {256u << 10, 8u << 20, 256u << 20};
  for (int w = 0; w < 3; w++)
    for (int th = 1; th <= 2; th++) {
      mem(COPY, "memcpy", th, ws[w], 1);
      mem(ADD, "add_c=a+b", th, ws[w], 1);
      mem(ADDIN, "add_c+=a", th, ws[w], 1);
      mem(ALL2, "ideal_allreduce_of_2", th, ws[w], 1);
      mem(ALL4, "ideal_allreduce_of_4", th, ws[w], 1);
    }
  for (int th = 1; th <= 2; th++) {
    mem(COPY, "memcpy_4k_pages", th, ws[2], 0);
    mem(ADD, "add_c=a+b_4k_pages", th, ws[2], 0);
    mem(ADDIN, "add_c+=a_4k_pages", th, ws[2], 0);
    mem(ALL2, "ideal_allreduce_of_2_4k_pages", th, ws[2], 0);
    mem(ALL4, "ideal_allreduce_of_4_4k_pages", th, ws[2], 0);
  }
  fresh("fresh_pages_4k", 64u << 20, MADV_NOHUGEPAGE);
  fresh("fresh_pages_2m", 64u << 20, MADV_HUGEPAGE);
  cacheline();
  futex("futex_one_way_2cores", 1);
  futex("futex_one_way_1core", 0);
  cma(1u << 20);
  cma(64u << 20);
  tcp("bbr", 0);
  tcp("bbr", 1);
  tcp("cubic", 0);
  tcp("cubic", 1);
  tcp("reno", 0);
  return 0;
}
