/* What the drivers share. */

#pragma once

#include <math.h>
#include <string.h>
#include <time.h>

#include <nvector/nvector_serial.h>
#include <sundials/sundials_context.h>

enum { STEPS, RESIDUALS, JACOBIANS, ERROR_FAILURES, NEWTON_FAILURES, SAVED, COUNTS };

#define MESSAGE_SIZE 400
#define MOST_STEPS 1000000

/* Every function of CasADi has this signature; functions of scalar expressions need no work memory. */
typedef int (*casadi_function)(const double **arguments, double **results, long long *iw, double *w, int memory);

/* Which states are wanted: those at `count` times, by the solver's own interpolation, the last time being the end; or, if `count` is negative, those after each of at most −count steps. */
typedef struct {
    int count;
    const double *times;
    double *states;
} Wanted;

typedef struct {
    double *seconds;
    long *counts;
    char *message;
} Report;

static inline double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

/* Keeps the first complaint of SUNDIALS, which is the one that tells the reason. */
static void keep_message(int code, const char *module, const char *function, char *text, void *message) {
    (void)code, (void)module, (void)function;
    if (!*(char *)message) strncpy(message, text, MESSAGE_SIZE - 1);
}

/* `STEP(until, mode)` advances `t` and `y` and returns a flag; what is timed is the steps, with one copy of the first `width` entries of y for each that is wanted. */
#define DRIVE(end, wanted, report, y, width, normal, one_step, STEP)                                                           \
    double t = 0.0;                                                                                                            \
    int flag = 0;                                                                                                              \
    long saved = 0;                                                                                                            \
    const double begin = now();                                                                                                \
    while (flag >= 0 && ((wanted).count > 0 ? saved < (wanted).count : saved < -(wanted).count && t < (end))) {                \
        flag = (wanted).count > 0 ? STEP((wanted).times[saved], normal) : STEP(end, one_step);                                 \
        memcpy((wanted).states + saved++ * (width), N_VGetArrayPointer(y), (width) * sizeof(double));                          \
    }                                                                                                                          \
    *(report).seconds = now() - begin;                                                                                         \
    memset((report).counts, 0, COUNTS * sizeof(long));                                                                         \
    (report).counts[SAVED] = saved;
