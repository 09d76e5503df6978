/* What the drivers share.  The problem (problem.c, written by CasADi) and its sizes (-DCOORDINATES, -DPOSITION_ROWS, -DROWS) come from peers.py. */

#pragma once

#include <math.h>
#include <string.h>
#include <time.h>

#include <nvector/nvector_serial.h>
#include <sundials/sundials_context.h>
#include <sunlinsol/sunlinsol_dense.h>
#include <sunmatrix/sunmatrix_dense.h>

#include "problem.h"

enum { STEPS, RESIDUALS, JACOBIANS, ERROR_FAILURES, NEWTON_FAILURES, COUNTS };

#define MESSAGE_SIZE 400

/* Every function of CasADi has this signature; functions of scalar expressions need no work memory. */
typedef int (*casadi_function)(const double **arguments, double **results, long long *iw, double *w, int memory);

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
