/* The underlying ODE q′ = v, v′ = a(t, q, v) and the projection onto its constraints or invariants, for CVODE
   and ARKODE.

   The projection is Newton's method in the metric of M: dq = −M⁻¹Gᵀ(G M⁻¹Gᵀ)⁻¹ g, then dv likewise from w + D
   dq.  It converges quadratically, so that a correction within the tolerance is the last one needed.  An
   error estimate is projected onto the tangent space with the same factors. */

#pragma once

#include "common.h"
#include "problem.h"

#define PROJECTION_ITERATIONS 10

typedef struct {
    double rtol, atol;
} Tolerances;

static int right_side(double t, N_Vector y, N_Vector out, void *data) {
    (void)data;
    const double *arguments[] = {&t, N_VGetArrayPointer(y)};
    double *results[] = {N_VGetArrayPointer(out)};
    return derivative(arguments, results, NULL, NULL, 0);
}

/* Where y0 must be moved (`total`) to satisfy the constraints; `e` becomes its part tangential to them. */
static int project(double t, const double *y0, double *total, double *e, const Tolerances *tolerances) {
    double y[STATES], step[STATES], tangential[STATES];
    memcpy(y, y0, sizeof y);
    memset(total, 0, sizeof y);
    const double *arguments[] = {&t, y, e};
    double *results[] = {step, tangential};
    for (int iteration = 0; iteration < PROJECTION_ITERATIONS; iteration++) {
        projection(arguments, results, NULL, NULL, 0);
        double sum = 0.0;
        for (int i = 0; i < STATES; i++) {
            const double scaled = step[i] / (tolerances->rtol * fabs(y0[i]) + tolerances->atol);
            sum += scaled * scaled;
            total[i] += step[i];
            y[i] = y0[i] + total[i];
        }
        if (sum <= STATES) {
            memcpy(e, tangential, sizeof tangential);
            return 0;
        }
    }
    return 1;
}
