/* What every driver in C gets and gives back. */

#pragma once

#include <math.h>
#include <string.h>
#include <time.h>

enum { STEPS, RESIDUALS, JACOBIANS, ERROR_FAILURES, NEWTON_FAILURES, SAVED, COUNTS };

#define MESSAGE_SIZE 400
#define MOST_STEPS 1000000

/* Every function of CasADi has this signature; functions of scalar expressions need no work memory. */
typedef int (*casadi_function)(const double **arguments, double **results, long long *iw, double *w,
                               int memory);

/* Which states are wanted: those at `count` times, by the solver's own interpolation, the last time being the
 * end; or, if `count` is negative, those after each of at most −count steps. */
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

/* Processor time, which other processes do not disturb. */
static inline double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}
