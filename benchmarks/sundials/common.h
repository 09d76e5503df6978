/* What the drivers share. */

#pragma once

#include "../driver.h"

#include <nvector/nvector_serial.h>
#include <sundials/sundials_context.h>

/* Keeps the first complaint of SUNDIALS, which is the one that tells the reason. */
static void keep_message(int code, const char *module, const char *function, char *text, void *message) {
    (void)code, (void)module, (void)function;
    if (!*(char *)message)
        strncpy(message, text, MESSAGE_SIZE - 1);
}

/* `STEP(until, mode)` advances `t` and `y` and returns a flag; what is timed is the steps, with one copy of
 * the first `width` entries of y for each that is wanted. */
#define DRIVE(end, wanted, report, y, width, normal, one_step, STEP)                                         \
    double t = 0.0;                                                                                          \
    int flag = 0;                                                                                            \
    long saved = 0;                                                                                          \
    const double begin = now();                                                                              \
    while (flag >= 0 &&                                                                                      \
           ((wanted).count > 0 ? saved < (wanted).count : saved < -(wanted).count && t < (end))) {           \
        flag = (wanted).count > 0 ? STEP((wanted).times[saved], normal) : STEP(end, one_step);               \
        memcpy((wanted).states + saved++ * (width), N_VGetArrayPointer(y), (width) * sizeof(double));        \
    }                                                                                                        \
    *(report).seconds = now() - begin;                                                                       \
    memset((report).counts, 0, COUNTS * sizeof(long));                                                       \
    (report).counts[SAVED] = saved;
