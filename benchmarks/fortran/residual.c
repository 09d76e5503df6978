/* DASPK and MEBDFI on F(t, Y, Y′) = 0, and ODASSL on the same with the constraints of position and velocity
   in addition; exact matrices ∂F/∂Y + cj ∂F/∂Y′, dense LU.

   `kinds` says of each unknown whether it is algebraic (2). */

#include "../driver.h"
#include "problem.h"

#include <stdlib.h>

typedef void residual(double *, double *, double *, double *, double *, int *, void *, int *);
typedef void matrix(double *, double *, double *, double *, double *, void *, int *);
typedef void long_residual(double *, int *, int *, double *, double *, double *, int *, void *, int *);
typedef void two_matrices(double *, double *, double *, double *, double *, double *, void *, int *);
extern void ddaspk_(residual *, int *, double *, double *, double *, double *, int *, double *, double *,
                    int *, double *, int *, int *, int *, void *, int *, matrix *, void (*)(void));
extern void odassl_(long_residual *, int *, int *, double *, double *, double *, double *, int *, double *,
                    double *, int *, double *, int *, int *, int *, void *, int *, two_matrices *);
extern void mebdfi_(int *, double *, double *, double *, double *, double *, double *, int *, int *, int *,
                    double *, int *, int *, int *, int *, int *, double *, double *, void *, int *, matrix *,
                    residual *, int *);

enum { DASPK, ODASSL, MEBDFI };

typedef struct {
    casadi_function residual, matrix;
} Form;

static void F(double *t, double *Y, double *dY, double *cj, double *out, int *flag, void *data, int *ipar) {
    (void)cj, (void)flag, (void)ipar;
    const double *arguments[] = {t, Y, dY};
    double *results[] = {out};
    ((Form *)data)->residual(arguments, results, NULL, NULL, 0);
}

static void J(double *t, double *Y, double *dY, double *out, double *cj, void *data, int *ipar) {
    (void)ipar;
    const double *arguments[] = {t, Y, dY, cj};
    double *results[] = {out};
    ((Form *)data)->matrix(arguments, results, NULL, NULL, 0);
}

/* The matrix of MEBDFI: ∂F/∂Y + (1 / c) ∂F/∂Y′. */
static void inverse_J(double *t, double *Y, double *dY, double *out, double *c, void *data, int *ipar) {
    double cj = 1.0 / *c;
    J(t, Y, dY, out, &cj, data, ipar);
}

static void longer_F(double *t, int *equations, int *unknowns, double *Y, double *dY, double *out, int *flag,
                     void *data, int *ipar) {
    (void)equations, (void)unknowns;
    F(t, Y, dY, NULL, out, flag, data, ipar);
}

static void two_J(double *t, double *Y, double *dY, double *first, double *second, double *cj, void *data,
                  int *ipar) {
    (void)ipar;
    const double *arguments[] = {t, Y, dY, cj};
    double *results[] = {first, second};
    ((Form *)data)->matrix(arguments, results, NULL, NULL, 0);
}

static void nothing(void) {}

int run_residual(int code, int form, int size, int extra, double end, double tolerance,
                 double algebraic_tolerance, const int *kinds, const int *index, const double *y0,
                 const double *dy0, int count, const double *times, double *states, double *seconds,
                 long *counts, char *message) {
    Form forms[] = {{index1_residual, index1_matrix},
                    {index2_residual, index2_matrix},
                    {ggl_residual, ggl_matrix},
                    {index3_residual, index3_matrix},
                    {overdetermined_residual, overdetermined_matrix}};
    int n = size, equations = size + extra, lwork = 1000 + 80 * equations + 8 * equations * equations,
        liwork = 1000 + 10 * equations, one_step = count < 0;
    double *work = calloc(lwork, sizeof(double)), *Y = malloc(n * sizeof(double)),
           *dY = malloc(n * sizeof(double)), *rtol = malloc(n * sizeof(double)),
           *atol = malloc(n * sizeof(double));
    int *iwork = calloc(liwork, sizeof(int)), info[30] = {0}, flag = 0, algebraic = 0;
    memcpy(Y, y0, n * sizeof(double)), memcpy(dY, dy0, n * sizeof(double));
    for (int i = 0; i < n; i++) {
        rtol[i] = tolerance, atol[i] = kinds[i] == 2 ? algebraic_tolerance : tolerance,
        algebraic += kinds[i] == 2;
        if (code == DASPK)
            iwork[40 + i] = kinds[i] == 2 ? -1 : 1;
    }
    info[1] = 1, info[2] = one_step, info[3] = 1, info[4] = 1, work[0] = end;
    if (code == DASPK)
        info[15] = 1;
    /* MEBDFI */
    int mf = 21, idid = 1, band[4] = {n, n, n, n}, order = 7, tolerances = 5, error = 0;
    double t = 0.0, h = 1e-6 * end, last = end;
    if (code == MEBDFI)
        memcpy(iwork, index, 3 * sizeof(int)), iwork[13] = MOST_STEPS;

    long saved = 0, calls = 0;
    const double begin = now();
    while (flag >= 0 && calls++ < MOST_STEPS && (count > 0 ? saved < count : saved < -count && t < end)) {
        double until = count > 0 ? times[saved] : end;
        if (code == MEBDFI) {
            if (idid != 1)
                idid = one_step ? 3 : until >= end ? 2 : 0;
            mebdfi_(&n, &t, &h, Y, dY, &until, &last, &mf, &idid, &lwork, work, &liwork, iwork, band, &order,
                    &tolerances, rtol, atol, forms + form, NULL, inverse_J, F, &error);
            flag = idid;
            if (calls == 1 && flag >= 0) { /* the first call only initialises */
                idid = one_step ? 3 : until >= end ? 2 : 0;
                continue;
            }
        } else if (code == DASPK) {
            ddaspk_(F, &n, &t, Y, dY, &until, info, rtol, atol, &flag, work, &lwork, iwork, &liwork,
                    forms + form, NULL, J, nothing);
        } else {
            odassl_(longer_F, &equations, &n, &t, Y, dY, &until, info, rtol, atol, &flag, work, &lwork, iwork,
                    &liwork, forms + form, NULL, two_J);
        }
        if (code != MEBDFI && flag == -1) { /* five hundred steps: go on */
            info[0] = 1, flag = 0;
            continue;
        }
        if (flag >= 0)
            memcpy(states + saved++ * STATES, Y, STATES * sizeof(double));
    }
    *seconds = now() - begin;
    memset(counts, 0, COUNTS * sizeof(long));
    counts[SAVED] = saved;
    if (code == MEBDFI)
        counts[STEPS] = iwork[4], counts[RESIDUALS] = iwork[6], counts[JACOBIANS] = iwork[7],
        counts[ERROR_FAILURES] = iwork[5];
    else
        counts[STEPS] = iwork[10], counts[RESIDUALS] = iwork[11], counts[JACOBIANS] = iwork[12],
        counts[ERROR_FAILURES] = iwork[13];
    free(work), free(Y), free(dY), free(rtol), free(atol), free(iwork);
    if (flag < 0)
        strncpy(message,
                flag == -6   ? "repeated failures of the error test"
                : flag == -7 ? "corrector does not converge"
                : flag == -8 ? "matrix is singular"
                             : "failed",
                MESSAGE_SIZE - 1);
    return flag;
}
